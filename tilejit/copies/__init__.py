"""pack, unpack, relayout, tiles by index, planned copies, and which copies TileJIT takes from NumPy."""
