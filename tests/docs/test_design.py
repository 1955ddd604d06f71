"""docs/design.md: its steps are the passes in order, and its code is what the compiler prints."""

from __future__ import annotations

import re
from typing import Any

import tilejit
from codegen.ir.printer import format_function
from codegen.pipeline.passes import function_passes
from codegen.pipeline.steps import first_arguments, kernel_of
from tests.docs.test_map import DESIGN
from tests.tools.goldens import GOLDEN

COPY = DESIGN[DESIGN.index("## A copy, from text") : DESIGN.index("## A copy in two stages")]
KERNEL = DESIGN[DESIGN.index("## A kernel, from text") : DESIGN.index("## The passes of loops")]
PASSES = DESIGN[DESIGN.index("## The passes of loops") : DESIGN.index("## Decisions")]


def blocks(text: str) -> list[str]:
    return re.findall(r"^```(?:python|text)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_table_lists_the_passes() -> None:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", PASSES, re.MULTILINE)
    listed = [(name, re.findall(r"`(\w+)`", kinds)) for name, kinds in rows]
    assert listed == [(run.__name__, [kind.__name__ for kind in kinds]) for run, kinds in function_passes()]


def test_the_copy_matches_its_golden_file() -> None:
    (kernel,) = [block for block in blocks(COPY) if block.startswith("def transpose_")]
    golden = (GOLDEN / "stages" / "transpose_u32_in_cache.txt").read_text()
    assert _nameless(kernel).rstrip() in _nameless(golden)


def test_the_kernel_matches_its_golden_file() -> None:
    golden = (GOLDEN / "stages" / "kernel_blend.txt").read_text()
    lines = [line.strip() for block in blocks(KERNEL) for line in block.splitlines()]
    assert len(lines) > 12
    for line in lines:
        pattern = re.escape(line).replace(re.escape("..."), ".*")
        assert re.search(pattern, golden), line


def test_the_loops_of_a_run_match_the_compilers() -> None:
    (loops,) = [block for block in blocks(COPY) if "%x_line" in block]
    nest = tilejit.explain("f32[8192,8192]{1,0:T(8,128)}", None).steps[0].nest
    assert f"{nest.statement.partition(': ')[2]}\n```" in COPY
    forms: dict[str, Any] = {}
    kernel_of(nest, first_arguments(nest), lambda name, form: forms.setdefault(name, form))
    assert dedented(loops) in dedented(format_function(forms["stream_lines"]))


def dedented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _nameless(text: str) -> str:
    """Without the digests at the end of kernel names."""
    return re.sub(r"_[0-9a-f]{12}\b", "_", text)
