"""The page that shows queues and Workloads: read-only, and to each user only what they may list."""
