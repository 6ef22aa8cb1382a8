"""What can go wrong with the sandbox."""


class SandboxError(Exception):
    """Any failure of the sandbox; the message is for the user."""


class BuildError(SandboxError):
    """A program of the control plane could not be built, or there is no Go toolchain."""


class NodesError(SandboxError):
    """A manifest names no usable simulated node."""


class StartError(SandboxError):
    """The control plane did not come up, or is not running."""
