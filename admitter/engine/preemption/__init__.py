"""Choosing victims: one file a rule, and the search for a smallest set."""
