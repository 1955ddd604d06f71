"""The stages of the copy in docs/tutorial/generated_code.md, as `tilejit.explain` prints them."""

from __future__ import annotations

from functools import cache

import tilejit

LAYOUT = "bf16[24,300]{1,0:T(8,128)(2,1)}"
LANGUAGES = {"nest": "text", "schedule": "text", "kernel": "python"}


def explained(stage: str) -> str:
    """A stage as a Markdown code block.

    nest: the loops of every box. schedule: the decisions for the largest one. kernel: its source.
    """
    block = f"```{LANGUAGES[stage]}\n{stage_text(stage)}\n```"
    return f"<!-- fmt: off -->\n\n{block}\n\n<!-- fmt: on -->"  # ruff formats Python in Markdown


@cache
def stage_text(stage: str) -> str:
    """The text of a stage."""
    copy = tilejit.explain(LAYOUT, None)
    texts = {
        "nest": copy.nest,
        "schedule": str(copy.steps[0].schedule),
        "kernel": copy.source.partition("\n\n")[0],
    }
    return texts[stage].rstrip()
