"""cuBLASLt's orders of int8 matrices."""

from __future__ import annotations

from tilejit.catalog.entries import Family, entry, ordered

_ORDERS = "cuBLAS, cublasLtOrder_t:"

FAMILY = Family(
    "cublaslt",
    "cuBLASLt's orders of int8 matrices",
    (
        entry(
            "col32",
            "cuBLASLt: columns in groups of 32, array M N",
            ordered("... M (N n) -> ... N M n, n=32"),
            ((8, 64), "s8"),
            f"{_ORDERS} CUBLASLT_ORDER_COL32",
        ),
        entry(
            "col4_4r2_8c",
            "cuBLASLt: int8 matrix B for Turing, array M N",
            ordered("... (M m4 m2) (N n4 n2 n) -> ... N M m2 n4 n2 m4 n, m4=4, m2=2, n4=4, n2=2, n=4"),
            ((16, 64), "s8"),
            f"{_ORDERS} CUBLASLT_ORDER_COL4_4R2_8C",
        ),
        entry(
            "col32_2r_4r4",
            "cuBLASLt: int8 matrix B for Ampere, array M N",
            ordered("... (M m8 m2 m) (N n) -> ... N M m2 m8 m n, m8=4, m2=4, m=2, n=32"),
            ((64, 64), "s8"),
            f"{_ORDERS} CUBLASLT_ORDER_COL32_2R_4R4",
        ),
    ),
)
