"""Which process decides: Leases, one for each shard, and a thread that keeps them renewed."""
