"""CuTe's layout algebra, exact; users find it as `tilejit.cute`."""
