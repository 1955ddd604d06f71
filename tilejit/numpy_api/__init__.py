"""NumPy's copying routines under NumPy's names, and `accelerate`, which puts them in NumPy's place."""
