"""Kernels whose subscripts are array elements, as plain functions. Python is their oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilejit as tj


def gather(y, x, idx):
    for i in range(len(y)):
        y[i] = x[idx[i]]


def gather_plus(y, x, idx):
    for i in range(len(y)):
        y[i] = x[int(idx[i]) + 1] + y[i]


def gather_named(y, x, idx):
    for i in range(len(y) - 1, -1, -1):
        k = idx[i]
        y[i] = x[k]


def gather_every_other(y, x, idx):
    for i in range(len(y) // 2):
        y[2 * i] = x[idx[2 * i + 1]]


def gather_twice(y, x, idx):
    for i in range(len(y)):
        y[i] = x[idx[idx[i]]]


def gather_half(y, x, idx):
    for i in range(len(y)):
        y[i] = x[int(idx[i]) // 2]


def scatter(y, x, idx):
    for i in range(len(idx)):
        y[idx[i]] = x[i]


def add_at(y, x, idx):
    for i in range(len(idx)):
        y[idx[i]] += x[i]


def scatter_apart(y, x, idx):
    for i in range(len(idx)):
        y[tj.permutation(idx)[i]] = x[i]


def add_apart(y, x, idx):
    for i in range(len(idx)):
        if x[i] > 1:
            y[tj.permutation(idx)[i]] += x[i]


def permute_both(y, x, idx):
    for i in range(len(idx)):
        y[tj.permutation(idx)[i]] = x[idx[len(idx) - 1 - i]]


def rows(y, x, idx):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[idx[i], j]


def columns(y, x, idx):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[i, idx[j]]


def both(y, x, idx):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[idx[i], idx[j]]


def rows_back(y, x, idx):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[idx[i], j] = x[i, j]


def rows_apart(y, x, idx):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, tj.permutation(idx)[i]] = x[i, j]


def triangle(y, x, idx):
    for i in range(y.shape[0]):
        for j in range(min(i, y.shape[1])):
            y[i, j] = x[j, idx[i]]


@dataclass(frozen=True)
class Case:
    """A function with its properties.

    Attributes:
        function: the function.
        rank: dimensions of y and x.
        lanes: the text of the report if the loop over elements runs in lanes, otherwise the reason why not.
        apart: whether indices must differ.
    """

    function: Callable[..., Any]
    lanes: str
    rank: int = 1
    apart: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__


CASES = (
    Case(gather, "x[idx[i]] gathered"),
    Case(gather_plus, "x[idx[i] + 1] gathered"),
    Case(gather_named, "gathered"),
    Case(gather_every_other, "x[idx[2*i + 1]] gathered"),
    Case(gather_twice, "x[idx[idx[i]]] gathered"),
    Case(gather_half, "x[idx[i] // 2] gathered"),
    Case(scatter, "scalar, scatter"),
    Case(add_at, "scalar, scatter"),
    Case(scatter_apart, "y[idx[i]] scattered", apart=True),
    Case(add_apart, "y[idx[i]] scattered", apart=True),
    Case(permute_both, "y[idx[i]] scattered", apart=True),
    Case(rows, "x[idx[i], j] contiguous", rank=2),
    Case(columns, "x[i, idx[j]] gathered", rank=2),
    Case(both, "x[idx[i], idx[j]] gathered", rank=2),
    Case(rows_back, "y[idx[i], j] contiguous", rank=2),
    Case(rows_apart, "y[j, idx[i]]", rank=2, apart=True),
    Case(triangle, "x[j, idx[i]]", rank=2),
)
