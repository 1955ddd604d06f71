"""The micro-benchmark suite. Answers are checked before timing starts, and figures are ratios within one run.

`python -m bench` prints the tables; `pytest bench` gives a quick overview with pytest-benchmark.
`python -m bench record` measures every schedule of a corpus; `python -m bench regret` judges choices by it.
`pip install '.[bench,peers]'` installs the dependencies of both, and the peer libraries.

Every case is measured in two passes: memcpy and TileJIT alternate, then memcpy and each peer. "x numpy"
compares the two shares of memcpy, so a slowdown of the machine between the passes cancels out. Arrays start
on cache lines and have been touched; the arrays of one case are freed before the next.
"""
