"""`@kernel`: options, programs of loops, their tuning, and calls that native code answers."""
