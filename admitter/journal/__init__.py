"""Decisions on file: all calls of the engine and what it decided, so that they can be replayed."""
