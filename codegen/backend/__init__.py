"""Source to machine code, and the store that keeps machine code on disk."""
