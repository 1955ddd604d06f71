"""Kernels at run time: arguments, launches, threads, and calls without a Python frame."""
