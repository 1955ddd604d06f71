"""The documents that TileJIT was created from: a test for each of their statements, in order."""
