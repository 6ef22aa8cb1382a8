"""The controllers' rules and the engine on manifests, with a virtual clock and without a cluster."""
