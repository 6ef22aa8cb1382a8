"""Random scenarios of everything that queues can say, played on the engine and judged by other arithmetic."""
