"""The compiler: access maps to loop nests to Python source to native kernels; knows no XLA, no NumPy routine."""
