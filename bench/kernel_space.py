"""Schedules of a kernel as text, and the one that TileJIT chooses.

They are those of some super-vectors, and texts for `schedule=` that change one decision of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import tilejit as tj
from bench.arrays import Array, flat_bytes
from bench.measure import LEARNING_CALLS
from bench.peers import Call
from bench.space import Make
from codegen import KernelError, Parallel, known_sizes

VECTOR_SIZES: tuple[Any, ...] = (
    *("auto", "1*hw", "2*hw", "8*hw", "16*hw", 256, 1024, 4096),
    *((4, 64), (8, 128), (16, 16), (32, 32), (64, 64), (32, 256)),
)
TILE_SIZES = 32, 64, 128, 256
"""Sides of the tiles of two loops that are both vectorized."""


@dataclass(frozen=True, slots=True)
class KernelSpace:
    """A kernel and its arguments.

    arguments  makes them; it gets whether to fill the arrays
    written    the number of the array that is written
    """

    python: Callable[..., None]
    arguments: Callable[[bool], Sequence[Array]]
    written: int = -1

    @property
    def moved_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(x.nbytes for x in self.arguments(False))

    @property
    def facts(self) -> dict[str, Any]:
        """The dtypes and shapes of the arrays."""
        return {"arrays": [f"{x.dtype.str[1:]}{[*x.shape]}" for x in self.arguments(False)]}

    def chosen(self) -> str:
        """The text of the kernel that runs with "auto"."""
        return self._text(self._kernel(virtual_vector_size="auto"), self.arguments(False))

    def calls(self) -> tuple[Array, dict[str, Make]]:
        """The array that is written, and a call for each text that the kernel takes."""
        arguments = self.arguments(True)

        def make(kernel: Any) -> Call:
            for _ in range(LEARNING_CALLS):
                kernel(*arguments)
            return partial(kernel, *arguments)

        makers: dict[str, Make] = {text: partial(make, kernel) for text, kernel in self.kernels().items()}
        return flat_bytes(arguments[self.written]), makers

    def kernels(self) -> dict[str, Any]:
        """The kernels by their texts."""
        given, found = self.arguments(False), dict[str, Any]()
        for size in VECTOR_SIZES:
            kernel = self._kernel(virtual_vector_size=size)
            found.setdefault(self._text(kernel, given), kernel)
        for text in dict.fromkeys(other for each in [*found] for other in _changed(each)):
            kernel = self._kernel(schedule=text)
            try:
                kernel.specialize(*given)
            except KernelError:  # the loops cannot have this schedule
                continue
            found.setdefault(text, kernel)
        return found

    def _kernel(self, **how: Any) -> Any:
        return tj.kernel(vectorize_reductions=True, vectorize_scans=True, parallel=1, **how)(self.python)

    def _text(self, kernel: Any, given: Sequence[Array]) -> str:
        """The directives for such arguments: large arrays may have tiles, and bypass the cache."""
        program = kernel.specialize(*given).program
        arrays = {x.name: array for x, array in zip(program.function.arguments, given, strict=True)}
        sizes = known_sizes({name: x.shape for name, x in arrays.items()}, {})
        runs = program.sized_kernel(arrays, sizes)
        # Without Parallel, threads share the outermost loop, whatever tiles it has.
        directives = [str(x) for x in program.directives if not isinstance(x, Parallel)]
        if runs is program.scalar_kernel:
            return "element by element"
        if runs is program.kernel:
            return ", ".join(directives)
        if runs is program.tiled_kernel:
            return ", ".join([*map(str, program.transposed_tiles), *directives])
        return ", ".join([*directives, 'Stream("full")'])


def _changed(text: str) -> Iterator[str]:
    """Texts that differ in streams or, if two loops are vectorized without tiles, in tiles."""
    stream = ', Stream("full")'
    yield text.removesuffix(stream) if text.endswith(stream) else text + stream
    lanes = re.match(r"Vectorize\((\w+)=(\d+), (\w+)=(\d+)\)", text)
    for size in TILE_SIZES if lanes else ():
        assert lanes
        tiles = (f'Tile("{lanes[k]}", {max(size, int(lanes[k + 1]))}), ' for k in (1, 3))
        yield "".join(tiles) + text
