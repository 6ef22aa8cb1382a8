"""Applies Admitter's definitions, permissions and policies to a cluster, and removes them."""
