"""Facts about arrays of NumPy and other libraries: memory, strides, values, floating-point status."""
