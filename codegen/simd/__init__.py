"""What generated kernels call. Its modules import Numba, so import them lazily."""
