"""What follows from declared quota: for other kinds than ClusterQueues, and from Cohorts above these."""
