"""Random copies and kernels between guard pages, against oracles."""
