"""The micro-benchmark suite: answers are checked before the clock, figures are ratios in one run.

`python -m bench` prints the tables, `pytest bench` a quick look with pytest-benchmark;
`pip install '.[bench,peers]'` brings what they need and whom they compare with.

Every case is measured in two passes, memcpy and TileJIT in turn, then memcpy and each peer in turn; "x numpy"
compares the two shares of memcpy, so that a machine that slows down between the passes does no harm. Arrays
start on cache lines and have been touched; those of one case are gone before the next.
"""
