"""Mutants of what stands on the compiler: layouts and their digits, expressions, routines, files."""

from __future__ import annotations

from tests.tools.mutants.mutant import Mutant

LAYOUTS = (
    Mutant(
        "padding-is-an-element",
        "The slot after a dimension's last element counts as an element.",
        "valid = valid & (value < shape.dimensions[d])",
        "valid = valid & (value <= shape.dimensions[d])",
        ("test_indexing",),
    ),
    Mutant(
        "tiles-rounded-down",
        "A partial tile at the end of a dimension is not counted.",
        "counts = tuple(-(-size // tile) for size, tile in zip(merged, step.tile, strict=True))",
        "counts = tuple(max(size // tile, 1) for size, tile in zip(merged, step.tile, strict=True))",
        ("test_shape", "test_xla"),
    ),
    Mutant(
        "composition-without-carries",
        "Modes whose sum carries into the next digit are composed as if it did not.",
        "if room[place] < 0 or n % take or",
        "if n % take or",
        ("test_algebra",),
    ),
    Mutant(
        "complement-rounded-down",
        "A complement stops below a bound that its repeats do not divide.",
        "gaps.append(Mode(max(1, -(-bound // current)), current))",
        "gaps.append(Mode(max(1, bound // current), current))",
        ("test_algebra",),
    ),
    Mutant(
        "swizzle-wrong-source",
        "A swizzle with a negative shift takes its bits from the wrong place.",
        "self.base + max(0, self.shift)",
        "self.base + abs(self.shift)",
        ("test_algebra", "test_swizzled"),
    ),
    Mutant(
        "digits-join-one-side",
        "Two digits merge although only one side walks them as one.",
        "joins = high.src == tree.tile * low.src and high.dst == tree.tile * low.dst",
        "joins = high.src == tree.tile * low.src or high.dst == tree.tile * low.dst",
        ("test_refine",),
    ),
    Mutant(
        "padding-slot-missed",
        "The first padding slot of a partial tile is left as it was.",
        "_range_boxes(tree.low, names, extent % tile, tree.low.extent)",
        "_range_boxes(tree.low, names, extent % tile + 1, tree.low.extent)",
        ("test_padding", "test_pack."),
    ),
    Mutant(
        "overlap-at-reach",
        "A stride equal to what the smaller ones reach counts as free of overlaps.",
        "if abs(digit.stride) <= reach:\n            return False",
        "if abs(digit.stride) < reach:\n            return False",
        ("test_pack_cute",),
    ),
)

EXPRESSIONS_AND_ROUTINES = (
    Mutant(
        "edge-outside",
        "np.pad with mode 'edge' repeats the element after the last one.",
        "(slice(end, None), end - 1, 1)",
        "(slice(end, None), end, 1)",
        ("test_against_numpy",),
    ),
    Mutant(
        "two-sum-sign",
        "A compensated sum adds the wrong rounding error.",
        'Let(new.name, Op("sub", (total, old), dtype))',
        'Let(new.name, Op("add", (total, old), dtype))',
        ("test_reductions",),
    ),
    Mutant(
        "outputs-read-late",
        "An output that is also an input is overwritten before the other outputs are computed.",
        'values = [Local(f"new{k}", value.dtype) for k, value in enumerate(values)]',
        "body = body[: len(parts)]",
        ("test_elementwise",),
    ),
)

FILES = (
    Mutant(
        "resume-trusts-journal",
        "A shortened unfinished file is continued where its journal says.",
        "if done > partial.stat().st_size:",
        "if done > partial.stat().st_size and not done:",
        ("test_resume",),
    ),
    Mutant(
        "range-cuts-byte",
        "The byte that packed elements end in is not read.",
        "begin, end = _joined((spans[0] * bits // 8, -(-spans[1] * bits // 8)), gap_bytes)",
        "begin, end = _joined((spans[0] * bits // 8, spans[1] * bits // 8), gap_bytes)",
        ("test_byte_ranges",),
    ),
    Mutant(
        "failure-exits-with-0",
        "A command that failed exits as if it had succeeded.",
        "sys.exit(code if isinstance(code, int) else 0)",
        "sys.exit(code if code == INTERRUPTED else 0)",
        ("cli/test_errors", "cli/"),
    ),
)

LIBRARY = (*LAYOUTS, *EXPRESSIONS_AND_ROUTINES, *FILES)
