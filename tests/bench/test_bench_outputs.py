"""`python -m bench` refuses files that it could not write before it measures anything."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from bench.__main__ import main


@pytest.mark.parametrize("option", ["json_file", "markdown_file", "plot_file"])
def test_a_directory_is_no_file(option: str, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="is a directory"):
        main("copies", quick=True, **{option: tmp_path})  # type: ignore[arg-type]


def test_unknown_suites_and_peers() -> None:
    with pytest.raises(typer.BadParameter, match="no suite nothing"):
        main("copies,nothing", quick=True)
    with pytest.raises(typer.BadParameter, match="no peer wrong"):
        main("copies", quick=True, against="wrong,")
