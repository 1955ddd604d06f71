"""The seed's texts about super-vectorization: printed line by line, read in their spelling, and run."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from codegen.support.errors import KernelError
from tests.mlir.opt_cases import BROADCASTS, ONE_LOOP, WIDEN
from tests.mlir.seed_texts import SEED, VECRED_BY_128, lines
from tilejit import mlir


@pytest.mark.parametrize("name", SEED)
def test_printed_text_matches_the_seed_line_by_line(name: str) -> None:
    """Without masks, the printed text is the seed's text, up to the names of values."""
    text, expected, options = SEED[name]
    printed = mlir.super_vectorize(text, options=options, masks="none")
    assert lines(printed, padding=name == "128") == lines(expected)


@pytest.mark.full
@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("name", ["256", "32x256"])
def test_vector_add_2d_runs(name: str, interpreted: bool) -> None:
    """9.0 at [7,42], whether or not the size divides the extents."""
    for sizes in ((9, 43), (64, 512)):
        result = mlir.run(SEED[name][1], "vector_add_2d", *sizes, interpreted=interpreted)
        assert result == np.float32(9.0)


@pytest.mark.full
@pytest.mark.parametrize("interpreted", [True, False])
def test_vecred_runs(interpreted: bool) -> None:
    """The sum of 500 cosines. The 12 elements after them may be anything."""
    x = np.random.default_rng(0).random(512, np.float32)
    expected = np.cos(x[:500].astype(np.float64)).sum()
    x[500:] = np.nan
    assert mlir.run(VECRED_BY_128, "vecred", x, interpreted=interpreted) == pytest.approx(expected, rel=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("name", SEED)
def test_the_seed_agrees_with_its_scalar_form(name: str) -> None:
    text, wide, _ = SEED[name]
    checked = mlir.check(text, wide)
    assert (checked.tolerance > 0) == (name == "128")
    assert str(checked).startswith(f"@{checked.functions[0]}: ")


def test_masks_are_omitted_only_if_that_changes_nothing() -> None:
    """A store ends with its array, so a loop up to the array's size needs no mask; others may."""
    for text, loop in ((ONE_LOOP, "i of line 3 ends at n"), (BROADCASTS, "j of line 5 ends at n")):
        with pytest.raises(KernelError, match=rf"needs masks: the loop {loop}.*\n  write a multiple of"):
            mlir.super_vectorize(text, virtual_vector_size=16, masks="none")
    whole = ONE_LOOP.replace(", %n: index) {", ") {\n  %z = arith.constant 0 : index\n"
                             "  %n = memref.dim %C, %z : memref<?xf32>")  # fmt: skip
    assert "create_mask" not in mlir.super_vectorize(whole, virtual_vector_size=16, masks="none")
    other = whole.replace("dim %C", "dim %A")
    with pytest.raises(KernelError, match="C may be longer"):
        mlir.super_vectorize(other, virtual_vector_size=16, masks="none")
    assert "create_mask" not in mlir.super_vectorize(WIDEN, virtual_vector_size=16, masks="none")
    with pytest.raises(KernelError, match="isn't known to be a multiple of 24"):
        mlir.super_vectorize(WIDEN.replace("to 64 {", "to 63 {"), virtual_vector_size=24, masks="none")
    with pytest.raises(KernelError, match='masks: expected "needed" or "none"'):
        mlir.super_vectorize(WIDEN, virtual_vector_size=16, masks="all")
