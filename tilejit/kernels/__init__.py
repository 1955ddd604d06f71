"""`@kernel`: options, programs of loops, tuning, and calls that native code answers."""
