"""From what users write to what the engine decides about: definitions, Workloads, Jobs."""
