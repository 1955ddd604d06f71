"""The micro-benchmark suite: answers are checked before the clock, figures are ratios in one run."""
