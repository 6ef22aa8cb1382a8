"""A live full-screen table of queues and Workloads: `admitter top`."""
