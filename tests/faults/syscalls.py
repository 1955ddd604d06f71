"""The module `os` as the store's files see it, with one call that fails or ends the process."""

from __future__ import annotations

import os
import signal
from typing import Any

WATCHED = ("open", "read", "write", "close", "replace", "unlink", "utime", "scandir", "fstat")


class Syscalls:
    """Counts the calls that change or read the disk, and makes one of them go wrong.

    Args:
        fail_at: the number of the call; with `onwards`, all later ones fail too.
        error: the error that it raises; None ends the process there, a write when half of it is done.
        onwards: whether all later calls fail too.
        at_most: the most bytes that one write writes.
    """

    def __init__(
        self, fail_at: int = -1, error: int | None = 0, *, onwards: bool = False, at_most: int = 1 << 30
    ) -> None:
        self.made: list[str] = []
        self.fail_at, self.error, self.onwards, self.at_most = fail_at, error, onwards, at_most

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._watched(name, real) if name in WATCHED else real

    def _watched(self, name: str, real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            number = len(self.made)
            self.made.append(name)
            if name == "write":
                handle, data = arguments
                arguments = handle, data[: self.at_most]
            if number == self.fail_at or (self.onwards and number > self.fail_at >= 0):
                self._fail(name, real, arguments)
            return real(*arguments, **options)

        return call

    def _fail(self, name: str, real: Any, arguments: tuple[Any, ...]) -> None:
        if name == "close":
            real(*arguments)  # the kernel closes a file even if it reports an error
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        if name == "write":
            handle, data = arguments
            real(handle, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
