"""TensorRT-LLM's weights of GEMMs with 16-bit activations."""

from __future__ import annotations

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid
from tilejit.catalog.packing import Field, Packing, Plane, xor
from tilejit.catalog.sources import EXPRESSIONS

_SM80 = {
    4: "... (K t a b p) (N i) -> ... N K i t b p a, t=2, a=4, b=4, p=2, i=4",
    8: "... (K t h q p) (N i) -> ... N K i t q p h, t=4, h=2, q=4, p=2, i=2",
}
_SM90 = {4: "(K a b p) N -> N K b p a, a=4, b=4, p=2", 8: "(K h q p) N -> N K q p h, h=2, q=4, p=2"}
_LEAST_K = {4: 32, 8: 16}


def _trtllm(sm: int = 80, bits: int = 4) -> Packing:
    arch, width = one_of("sm", sm, (75, 80, 86, 89, 90, 100, 103, 120, 121)), one_of("bits", bits, (4, 8))
    is_old = arch < 90 or arch >= 120
    plane = Plane("values", "... K N" if is_old else "K N", width, signed=True)
    flip = None if arch in (100, 103) else xor(1 << width - 1)
    pattern = _SM80[width] if is_old else _SM90[width] if arch == 90 else "K N -> N K"
    return Packing(
        (plane,),
        (Field(("values",), pattern, values=flip),),
        tensors={"buffer": f"s8: {plane.axes}" + "/2" * (width == 4)},
        multiples={"K": 64 if is_old else _LEAST_K[width], "N": 64 // width},
    )


FAMILY = Family(
    "mixed-gemm",
    "TensorRT-LLM's weights of mixed GEMMs",
    (
        entry(
            "trtllm-mixed-gemm",
            "TensorRT-LLM: int4 or int8 weights for 16-bit activations, array K N; stacked weights from SM90 "
            "up take sm=80",
            _trtllm,
            ((64, 16), "s8"),
            "TensorRT-LLM (2026), tensorrt_llm/quantization/functional.py, preprocess_weights_for_mixed_gemm",
            verified=EXPRESSIONS,
            variants=grid(sm=(80, 90, 100), bits=(4, 8)),
        ),
    ),
)
