"""The IR of copies: nests of transfers, the tables they read, the printer and the interpreter."""
