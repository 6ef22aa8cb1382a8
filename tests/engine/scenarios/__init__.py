"""Random scenarios of all that queues can say, played on the engine and checked by other arithmetic."""
