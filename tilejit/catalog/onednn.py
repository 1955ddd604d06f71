"""oneDNN and ONNX Runtime: channels and weights in blocks."""

from __future__ import annotations

from tilejit.catalog.entries import Family, entry, ordered

_TAGS = "oneDNN, dnnl_format_tag_t in dnnl_types.h"

FAMILY = Family(
    "onednn",
    "oneDNN's blocked tags, of which these are the most frequent",
    (
        entry(
            "nChw16c",
            "oneDNN: channels in blocks of 16, array N C H W",
            ordered("n (C c) h w -> n C h w c, c=16"),
            ((1, 32, 1, 4), "f32"),
            _TAGS,
        ),
        entry(
            "nChw8c",
            "oneDNN: channels in blocks of 8, array N C H W",
            ordered("n (C c) h w -> n C h w c, c=8"),
            ((1, 16, 1, 4), "f32"),
            _TAGS,
        ),
        entry(
            "OIhw16i16o",
            "oneDNN: weights in blocks of 16 x 16, array O I H W",
            ordered("(O o) (I i) h w -> O I h w i o, i=16, o=16"),
            ((16, 16, 1, 1), "f32"),
            _TAGS,
        ),
        entry(
            "OIhw4i16o4i",
            "oneDNN: int8 weights, array O I H W",
            ordered("(O o) (I i i2) h w -> O I h w i o i2, i=4, o=16, i2=4"),
            ((16, 16, 1, 1), "s8"),
            _TAGS,
        ),
    ),
)
