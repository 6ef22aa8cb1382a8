"""A local Kubernetes control plane with simulated nodes, for the demo and the tests.

`toolchain` names the programs, `build` makes them, `control_plane` starts and finds them, `supervisor` is the
one process that owns them while they run.
"""
