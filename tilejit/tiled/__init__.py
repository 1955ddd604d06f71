"""TiledArray, its buffers and tiles, and views of it."""
