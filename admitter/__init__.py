"""Admitter decides when a Kubernetes Job may start."""

__version__ = "0.1.0"
