"""NumPy's copying routines under NumPy's names, and `accelerate`, which installs them in NumPy."""
