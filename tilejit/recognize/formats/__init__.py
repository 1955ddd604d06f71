"""The format of a buffer, beside the array that was packed."""
