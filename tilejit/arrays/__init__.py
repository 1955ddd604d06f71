"""What TileJIT knows of arrays, NumPy's and others': memory, strides, values, floating-point status."""
