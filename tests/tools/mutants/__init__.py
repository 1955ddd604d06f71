"""Bugs planted on purpose, one at a time, to measure the tests: `python -m tests.tools.mutants`."""
