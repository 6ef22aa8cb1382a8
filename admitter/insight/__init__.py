"""Answers about what is decided: why, when, and what a change would do. Nothing here writes."""
