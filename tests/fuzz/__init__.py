"""Hostile input: everything that reads a text or a file, under a fuzzer; `python -m tests.fuzz --help`."""
