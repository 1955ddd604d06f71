"""Functions with scan loops, which store `s` before or after each element; for kernels and Python."""

from __future__ import annotations

import numpy as np


def sums(a, y, s):
    for i in range(a.shape[0]):
        s += a[i]
        y[i] = s
    return s


def sums_before(a, y, s):
    for i in range(a.shape[0]):
        y[i] = s
        s += a[i]
    return s


def differences(a, y, s):
    for i in range(a.shape[0]):
        s -= a[i]
        y[i] = s
    return s


def products(a, y, s):
    for i in range(a.shape[0]):
        s *= a[i]
        y[i] = s
    return s


def minima(a, y, s):
    for i in range(a.shape[0]):
        s = np.minimum(s, a[i])
        y[i] = s
    return s


def maxima(a, y, s):
    for i in range(a.shape[0]):
        s = np.maximum(a[i], s)
        y[i] = s
    return s


def least(a, y, s):
    for i in range(a.shape[0]):
        s = min(s, a[i])
        y[i] = s
    return s


def greatest_before(a, y, s):
    for i in range(a.shape[0]):
        y[i] = s
        s = max(s, a[i])
    return s


def greatest_by_if(a, y, s):
    for i in range(a.shape[0]):
        if a[i] > s:
            s = a[i]
        y[i] = s
    return s


def last_greatest(a, y, s):
    for i in range(a.shape[0]):
        s = a[i] if a[i] >= s else s
        y[i] = s
    return s


def ands(a, y, s):
    for i in range(a.shape[0]):
        s &= a[i]
        y[i] = s
    return s


def ors(a, y, s):
    for i in range(a.shape[0]):
        s |= a[i]
        y[i] = s
    return s


def xors(a, y, s):
    for i in range(a.shape[0]):
        s ^= a[i]
        y[i] = s
    return s


def counted(a, y, s):
    for i in range(a.shape[0]):
        if a[i] > 5:
            s += a[i]
        y[i] = s
    return s


def both_values(a, y, s):
    for i in range(a.shape[0]):
        before = s
        s += a[i]
        y[i] = before ^ s
    return s


def backward_by_3(a, y, s):
    for i in range(a.shape[0] - 1, -1, -3):
        s += a[i]
        y[i] = s
    return s


def sums_of_sums(a, y, s):
    t = s
    for i in range(a.shape[0]):
        s += a[i]
        t += s
        y[i] = t
    return t


EXTREMES = (minima, maxima, least, greatest_before, greatest_by_if, last_greatest)
EXACT = (sums, sums_before, differences, products, counted, backward_by_3, sums_of_sums, *EXTREMES)
BITS = (ands, ors, xors, both_values)
