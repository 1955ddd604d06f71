"""Between XLA's shapes and CuTe's layouts, exact: one says what the other says, or an index shows it cannot.

Without `*` each dimension of an XLA shape is a sum of digits of its own, so it becomes a mode of a layout
over a box no smaller than the array. Back, the modes are digits whose order in storage tiles must spell.
"""

from tilejit.layout.bridge.from_offsets import from_offsets
from tilejit.layout.bridge.from_xla import BoundedLayout, bounded, from_xla
from tilejit.layout.bridge.to_xla import to_xla

__all__ = ["BoundedLayout", "bounded", "from_offsets", "from_xla", "to_xla"]
