"""The micro-benchmark suite. Answers are checked before timing starts, and figures are ratios within one run.

`python -m bench` prints the tables; `pytest bench` gives a quick overview with pytest-benchmark.
`pip install '.[bench,peers]'` installs their dependencies and the peer libraries.

Every case is measured in two passes: memcpy and TileJIT alternate, then memcpy and each peer. "x numpy"
compares the two shares of memcpy, so a machine that slows down between the passes does no harm. Arrays start
on cache lines and have been touched; those of one case are freed before the next.
"""
