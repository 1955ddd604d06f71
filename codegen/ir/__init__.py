"""The loop-nest IR: nodes, index expressions, dtypes, traversal, the printer and the interpreter."""
