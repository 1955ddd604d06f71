"""End a function whose stores bypass the cache with a fence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.ir.nodes import Alloc, Call, For, Function, If, Let, Prefetch, Statement, Store, View


def fence_streams(function: Function, _: object = None) -> Function:
    """Order streamed lines before whatever follows the call: other threads may read the results.

    The summary says that lines are streamed.

    before:  for x in 0..count step 64: dst[x] = src[x] [64] streamed
    after:   the same; call stream_fence()
    """
    if not streams(function.body):
        return function
    summary = function.summary and f"{function.summary.removesuffix('.')}; full lines past the cache."
    return replace(function, body=(*function.body, Call("stream_fence")), summary=summary)


def streams(body: Sequence[Statement]) -> bool:
    """Whether any store of a body bypasses the cache."""
    return any(map(_streams, body))


def _streams(statement: Statement) -> bool:
    match statement:
        case Store():
            return statement.streamed
        case For(body=inside):
            return streams(inside)
        case If(_, then, otherwise):
            return streams(then) or streams(otherwise)
        case Let() | View() | Alloc() | Prefetch() | Call():
            return False
        case _:
            raise AssertionError(f"fence_streams: no rule for {type(statement).__name__}")
