"""Print nests as Python source."""
