"""`tilejit.mlir.check`: texts that agree, and where texts differ."""

from __future__ import annotations

import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

import tilejit as tj
from codegen.support.errors import KernelError
from tests.mlir.opt_cases import ONE_LOOP, reduction
from tests.mlir.seed_texts import VECRED_BY_128
from tests.mlir.texts import VECRED, VECTOR_ADD_2D
from tilejit import mlir

WIDE = mlir.super_vectorize(ONE_LOOP, virtual_vector_size=16)
UNMASKED = WIDE.replace("%C[%i], %4 :", "%C[%i] :")


@pytest.mark.full
def test_texts_that_agree() -> None:
    checked = mlir.check(ONE_LOOP, WIDE)
    assert checked.functions == ("f",)
    assert checked.tolerance == 0.0
    assert len(checked.cases) == 14
    assert "A of 20, C of 20, n = 15" in checked.cases
    assert str(checked) == "@f: 14 calls agree exactly"
    assert mlir.check(mlir.parse(ONE_LOOP), mlir.parse(WIDE), sizes=[3]) == mlir.check(
        ONE_LOOP, WIDE, sizes=(3,)
    )


def test_a_missing_mask_is_found() -> None:
    """Arrays that continue after the loop show it. The error names the element and the sizes."""
    assert UNMASKED != WIDE
    with pytest.raises(tj.TilejitError) as caught:
        mlir.check(ONE_LOOP, UNMASKED)
    assert str(caught.value).startswith("@f differs in super-vectors with A of 6, C of 6, n = 1: C[1] is ")
    assert "; 5 of 6 elements differ\n  compare the bounds" in str(caught.value)


@pytest.mark.full
def test_a_wrong_operation_is_found() -> None:
    with pytest.raises(KernelError, match=r"C\[0\] is .*, not "):
        mlir.check(ONE_LOOP, WIDE.replace("mulf", "addf"))
    with pytest.raises(KernelError, match=r"result 0 is .*, not "):
        mlir.check(VECRED, VECRED_BY_128.replace("500", "501"))


def test_a_transfer_outside_an_array_is_found() -> None:
    promised = WIDE.replace("%cst : memref", "%cst {in_bounds = [true]} : memref")
    with pytest.raises(KernelError, match=r"@f in super-vectors fails with .* may leave the array"):
        mlir.check(ONE_LOOP, promised)


@pytest.mark.full
def test_sums_have_a_tolerance() -> None:
    """The machine epsilon times the elements; integers are exact."""
    assert mlir.check(VECRED, VECRED_BY_128).tolerance == pytest.approx(512 * 2**-23)
    for operation, dtype, neutral in (("arith.addi", "i32", "0"), ("arith.minui", "i64", "-1")):
        text = reduction(operation, dtype, neutral)
        wide = mlir.super_vectorize(text, virtual_vector_size=16, vectorize_reductions=True)
        assert mlir.check(text, wide, sizes=(0, 1, 500)).tolerance == 0.0


@pytest.mark.full
def test_functions_are_paired_by_name() -> None:
    both = VECTOR_ADD_2D + VECRED
    wide = mlir.super_vectorize(both, virtual_vector_size=64, vectorize_reductions=True)
    assert mlir.check(both, wide).functions == ("vector_add_2d", "vecred")
    with pytest.raises(KernelError, match="no function 'vecred'"):
        mlir.check(both, mlir.super_vectorize(VECTOR_ADD_2D, virtual_vector_size=64) + WIDE)
    renamed = WIDE.replace("@f(", "@g(")
    assert mlir.check(ONE_LOOP, renamed, sizes=[5]).functions == ("f",)


def test_functions_that_cannot_be_compared() -> None:
    with pytest.raises(KernelError, match="@f and @vecred have different signatures"):
        mlir.check(ONE_LOOP, VECRED)
    with pytest.raises(KernelError, match="@vector_add_2d rejects all sizes"):
        mlir.check(VECTOR_ADD_2D, VECTOR_ADD_2D, sizes=[3])
    for sizes, kind in (([-1], KernelError), ([], KernelError), ("3", TypeError), ([2.5], TypeError)):
        with pytest.raises(kind, match=r"sizes(:| is) "):
            mlir.check(ONE_LOOP, WIDE, sizes=sizes)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seed: expected an integer"):
        mlir.check(ONE_LOOP, WIDE, seed=0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected MLIR text as a str"):
        mlir.check(ONE_LOOP, None)  # type: ignore[arg-type]
