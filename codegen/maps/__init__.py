"""Access maps (where each element lives, as digit trees), their common refinement, boxes, and padding."""
