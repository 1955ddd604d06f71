"""Settings from environment variables, read once."""

from __future__ import annotations

import os
from functools import cache

from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The TILEJIT_… variables. An empty variable counts as unset, and "0" turns a switch off.

    Paths are absolute and `~` is expanded, so later changes of the working directory have no effect.
    """

    threads: str
    cache_directory: str
    cache_bytes: str
    no_cache: bool
    dump_directory: str
    verify: bool
    verify_passes: bool
    cpu: str
    machine: str
    direct_calls: bool


@cache
def settings() -> Settings:
    """The settings of this process at the time of the first call."""
    return Settings(
        threads=_text("TILEJIT_THREADS"),
        cache_directory=_path("TILEJIT_CACHE_DIR"),
        cache_bytes=_text("TILEJIT_CACHE_BYTES"),
        no_cache=_switch("TILEJIT_NO_CACHE"),
        dump_directory=_path("TILEJIT_DUMP"),
        verify=_switch("TILEJIT_VERIFY"),
        verify_passes=_switch("TILEJIT_VERIFY") or _switch("TILEJIT_VERIFY_PASSES"),
        cpu=_text("TILEJIT_CPU"),
        machine=_path("TILEJIT_MACHINE"),
        direct_calls=_switch("TILEJIT_DIRECT_CALLS", "1"),
    )


def _text(name: str) -> str:
    return os.environ.get(name, "").strip()


def _path(name: str) -> str:
    path = _text(name)
    return os.path.abspath(os.path.expanduser(path)) if path else ""


def _switch(name: str, unset: str = "0") -> bool:
    return (_text(name) or unset).lower() not in ("0", "false", "no", "off")
