"""Files are written completely or not at all, with temporary files with and without a name."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen import TilejitError
from tilejit.files.whole_file import replacing


@pytest.fixture(params=["nameless", "named"], autouse=True)
def temporary_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both kinds of temporary files."""
    if request.param == "named":
        monkeypatch.setattr(os, "open", _without_unnamed_files)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    return request.param


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir())


@pytest.mark.parametrize("there", [False, True])
def test_the_file_appears_when_everything_is_written(
    tmp_path: Path, there: bool, temporary_file: str
) -> None:
    target = tmp_path / "x"
    if there:
        target.write_bytes(b"old")
        target.chmod(0o640)
    with replacing(target) as file:
        file.write(b"new" * 1000)
        file.flush()
        assert (target.read_bytes() == b"old") if there else not target.exists()
        assert len(names(tmp_path)) == there + (temporary_file == "named")
    assert target.read_bytes() == b"new" * 1000
    assert names(tmp_path) == ["x"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == (0o640 if there else 0o666 & ~mask)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, ValueError])
def test_nothing_is_left_of_a_failed_write(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "x").write_bytes(b"old")

    def fails() -> None:
        with replacing(tmp_path / "x") as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        fails()
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"


def test_errors_of_the_disk_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left on device: '.*/x'"), replacing(tmp_path / "x"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with (
        pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*/none/x'"),
        replacing(tmp_path / "none" / "x"),
    ):
        raise AssertionError("there is nothing to write to")
    assert names(tmp_path) == []


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_created_meanwhile_is_kept(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch, temporary_file: str
) -> None:
    """Even if the file system has no hard links."""
    if not links and temporary_file == "named":
        monkeypatch.setattr(os, "link", _no_link)
    target = tmp_path / "x"
    with replacing(target, clobber=False) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"
    target.unlink()

    def late() -> None:
        with replacing(target, clobber=False) as file:
            file.write(b"new")
            target.write_bytes(b"other")

    with pytest.raises(TilejitError, match="exists and is kept"):
        late()
    assert target.read_bytes() == b"other"
    assert names(tmp_path) == ["x"]


_open = os.open


def _without_unnamed_files(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
    """As on old kernels and some file systems."""
    if flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", -1):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    return _open(path, flags, mode, **more)


def _no_link(*arguments: object, **more: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
