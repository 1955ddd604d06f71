"""pack, unpack, relayout, gathers and scatters of tiles, copy plans, and which copies NumPy makes."""
