"""Decisions on file: all that the engine was told and what it decided, so that it can be told again."""
