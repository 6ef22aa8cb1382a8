"""From the manifests of other queueing systems to Admitter's: one module a system."""
