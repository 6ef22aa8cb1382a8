"""Other ways to declare quota than ClusterQueues: each becomes queues of the engine."""
