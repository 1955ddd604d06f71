"""MLX: quantized arrays with their scales."""

from __future__ import annotations

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid
from tilejit.catalog.packing import Field, Packing, Plane

_SOURCE = "mlx 0.32.4, mx.quantize"
_RUN = "run: mlx 0.32.4 on a CPU"


def _packing(bits: int, group: int, scales: tuple[Plane, ...]) -> Packing:
    """Codes in 32-bit words along rows, and planes of one value for each group."""
    return Packing(
        (Plane("codes", "... R C", bits), *scales),
        (Field(("codes",), buffer="weight"), *(Field((s.name,), buffer=s.name) for s in scales)),
        tensors={
            "weight": f"u32: ... R C*{bits}/32",
            **{s.name: f"{'u8' if s.bits else 'any'}: {s.axes}" for s in scales},
        },
        multiples={"C": group},
        optional=tuple(s.name for s in scales),
    )


def _affine(bits: int = 4, group: int = 64) -> Packing:
    width, step = one_of("bits", bits, (2, 3, 4, 5, 6, 8)), one_of("group", group, (32, 64, 128))
    return _packing(width, step, tuple(Plane(name, f"... R C/{step}") for name in ("scales", "biases")))


def _micro(bits: int, group: int) -> Packing:
    return _packing(bits, group, (Plane("scales", f"... R C/{group}", 8),))


FAMILY = Family(
    "mlx",
    "MLX's quantized arrays",
    (
        entry(
            "mlx-affine",
            "MLX: codes in 32-bit words along rows, array R C; value scale * code + bias",
            _affine,
            ((2, 64), "uint8"),
            f"{_SOURCE}, mode affine",
            verified=_RUN,
            variants=grid(bits=(4, 2, 3, 5, 6, 8), group=(64, 32, 128)),
        ),
        entry(
            "mlx-mxfp4",
            "MLX: E2M1 codes, array R C, and an E8M0 scale for each 32; -0 is stored as 0",
            _micro(4, 32),
            ((2, 32), "uint8"),
            f"{_SOURCE}, mode mxfp4",
            verified=_RUN,
        ),
        entry(
            "mlx-nvfp4",
            "MLX: E2M1 codes, array R C, and an E4M3 scale for each 16; -0 is stored as 0",
            _micro(4, 16),
            ((2, 32), "uint8"),
            f"{_SOURCE}, mode nvfp4",
            verified=_RUN,
        ),
        entry(
            "mlx-mxfp8",
            "MLX: E4M3 codes, array R C, four in a word, and an E8M0 scale for each 32",
            _micro(8, 32),
            ((2, 32), "uint8"),
            f"{_SOURCE}, mode mxfp8",
            verified=_RUN,
        ),
    ),
)
