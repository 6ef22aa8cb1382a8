"""The page that shows queues and Workloads: read-only, and to each only what the API server lets him list."""
