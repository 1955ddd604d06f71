"""`elementwise`: tracing, loops, outputs, stages, reductions, tiled operands."""
