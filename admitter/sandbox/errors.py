"""What can go wrong with the sandbox.

SandboxError
├── BuildError      a program could not be built, or no Go toolchain found
├── NodesError      a manifest of nodes is wrong
└── StartError      the control plane did not come up, or is not there
"""


class SandboxError(Exception):
    """Any failure of the sandbox; the message is for the user."""


class BuildError(SandboxError):
    """A program of the control plane could not be built."""


class NodesError(SandboxError):
    """A manifest names no usable simulated node."""


class StartError(SandboxError):
    """The control plane did not come up, or is not running."""
