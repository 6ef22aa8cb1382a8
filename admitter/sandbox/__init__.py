"""A local Kubernetes control plane with simulated nodes, for the demo and the tests.

`releases` names the programs, `toolchain` and `build` make them, `control_plane` starts and
finds them, `supervisor` is the one process that owns them while they run.
"""
