"""`python -m admitter` is the command `admitter`."""

from admitter.cli.main import process

process()
