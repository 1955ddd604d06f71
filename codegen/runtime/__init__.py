"""Kernels in use: arguments, launches, threads, and calls without a Python frame."""
