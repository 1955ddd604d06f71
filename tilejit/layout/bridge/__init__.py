"""Exact conversions between XLA's shapes and CuTe's layouts; if none exists, an index shows why.

Without `*`, each dimension of an XLA shape is a sum of digits of its own. It becomes a mode of a CuTe layout
over a box at least as large as the array. In the other direction, modes are digits, and tiles must produce
their order in storage.
"""

from tilejit.layout.bridge.from_offsets import from_offsets
from tilejit.layout.bridge.from_xla import BoundedLayout, bounded, from_xla
from tilejit.layout.bridge.to_xla import to_xla

__all__ = ["BoundedLayout", "bounded", "from_offsets", "from_xla", "to_xla"]
