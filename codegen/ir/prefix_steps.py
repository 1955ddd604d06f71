"""The steps in which lanes of a register are combined with all lanes before them."""

from __future__ import annotations

STEPS = tuple(1 << k for k in range(10))
"""Half the lanes of a block, whose upper half is combined with its lower one; registers have 1024 at most."""
