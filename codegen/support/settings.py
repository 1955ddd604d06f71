"""What the environment asks for, read once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Settings:
    """The TILEJIT_… variables; an empty one is as good as none, and "0" switches a switch off.

    Folders are absolute, `~` is the user's own: a later change of the working directory moves none.
    """

    threads: str
    cache_directory: str
    cache_bytes: str
    no_cache: bool
    dump_directory: str
    verify: bool
    cpu: str


@cache
def settings() -> Settings:
    """The settings of this process, as they were when they were first asked for."""
    return Settings(
        threads=_text("TILEJIT_THREADS"),
        cache_directory=_folder("TILEJIT_CACHE_DIR"),
        cache_bytes=_text("TILEJIT_CACHE_BYTES"),
        no_cache=_switch("TILEJIT_NO_CACHE"),
        dump_directory=_folder("TILEJIT_DUMP"),
        verify=_switch("TILEJIT_VERIFY"),
        cpu=_text("TILEJIT_CPU"),
    )


def _text(name: str) -> str:
    return os.environ.get(name, "").strip()


def _folder(name: str) -> str:
    wanted = _text(name)
    return os.path.abspath(os.path.expanduser(wanted)) if wanted else ""


def _switch(name: str) -> bool:
    return _text(name).lower() not in ("", "0", "false", "no", "off")
