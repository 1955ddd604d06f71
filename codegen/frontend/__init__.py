"""Ways into the IR: Python functions, and copies between two access maps."""
