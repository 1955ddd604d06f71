"""Front ends that produce the IR: Python functions, and copies between two access maps."""
