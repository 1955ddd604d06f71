# ruff: noqa: N803, N806
"""Small functions with loops, on which the reader, the interpreter and Python itself are compared."""

from __future__ import annotations

import math

import numpy as np

from codegen.frontend.ranges import LOOP_MARK

HALF = 0.5
SHIFT = np.int32(3)


def parallel(iterator):
    return iterator


def reduction(iterator):
    return iterator


for _says in (parallel, reduction):
    setattr(_says, LOOP_MARK, _says.__name__)


def add(A, B, C):
    for i in range(A.shape[0]):
        C[i] = A[i] + B[i]


def add_2d(A, B, C):
    M, N = A.shape
    for i in range(M):
        for j in range(N):
            s = A[i, j] + B[i, j]
            C[i, j] = (s + 1.0) + (s + 2.0)


def saxpy(alpha, X, Y):
    for i in range(len(X)):
        Y[i] += alpha * X[i]


def dot(A, B):
    acc = 0.0
    for i in range(A.shape[0]):
        acc += A[i] * B[i]
    return acc


def total_and_product(A):
    total = 0
    product = 1
    for i in range(A.shape[0]):
        total += A[i]
        product *= A[i]
    return total, product


def count(A, limit):
    found = 0
    for i in range(A.shape[0]):
        found += 1 if A[i] > limit else 0
    return found


def sum_of_some(A):
    acc = 0.0
    for i in range(A.shape[0]):
        if A[i] > 0:
            acc += A[i]
    return acc


def largest_if(A):
    best = -1e30
    for i in range(A.shape[0]):
        best = best if best >= A[i] else A[i]
    return best


def record(A):
    best = A[0]
    for i in range(A.shape[0]):
        x = abs(A[i])
        if best < x:
            best = x
    return best


def least_kept(A):
    low = A[0]
    for i in range(A.shape[0]):
        low = low if low <= A[i] else A[i]
    return low


def not_reductions(A):
    a = 0.0
    b = 0.0
    c = 1.0
    for i in range(A.shape[0]):
        a = A[i] - a
        b = b + b * A[i]
        c = c * A[i] if c < 100 else c
    return a, b, c


def least_and_largest(A):
    low = math.inf
    high = -math.inf
    for i in range(A.shape[0]):
        low = min(low, A[i])
        high = max(A[i], high)
    return low, high


def bits(A, B, C):
    every = -1
    some = 0
    odd = 0
    for i in range(A.shape[0]):
        C[i] = (A[i] & B[i]) | ((A[i] ^ 5) << 1)
        every &= A[i]
        some |= A[i]
        odd ^= ~B[i] >> SHIFT
    return every, some, odd


def matmul(A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[k, j]
            C[i, j] = s


def matmul_in_place(A, B, C):
    for i in range(C.shape[0]):
        for k in range(A.shape[1]):
            for j in range(C.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def transpose(A, B):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[j, i] = A[i, j]


def row_sums(A, S):
    for i in range(A.shape[0]):
        S[i] = 0
        for j in range(A.shape[1]):
            S[i] += A[i, j]


def broadcast(A, B, C):
    for i in range(A.shape[0]):
        b = B[i]
        for j in range(A.shape[1]):
            C[i, j] = A[i, j] + b


def strided(A, C):
    for i in range(C.shape[0] // 2):
        C[2 * i] = A[2 * i + 1]


def every_third(A, C):
    for i in range(1, A.shape[0], 3):
        C[i] = A[i] * i


def backwards(A, C):
    for i in range(A.shape[0] - 1, -1, -1):
        C[A.shape[0] - 1 - i] = A[i]


def backwards_by_two(A, C):
    for i in range(A.shape[0] - 1, 1, -2):
        C[i] = A[i - 1] + C[i - 2]


def triangle(A, C):
    for i in range(A.shape[0]):
        for j in range(i + 1):
            C[i, j] = A[i, j] - A[j, i]


def band(A, C):
    n = A.shape[0]
    for i in range(n):
        for j in range(max(0, i - 1), min(n, i + 2)):
            C[i, j] = A[i, j]


def clipped_ends(A, C, n):
    first = max(1, n - 4)
    last = min(n + 4, A.shape[0]) - 1
    for i in range(first, last):
        C[i] = A[i - 1] + A[i + 1]


def floor_and_mod(A, C):
    for i in range(C.shape[0]):
        C[i] = A[i // 4 + i % 3]


def tiled(A, C):
    for i in range(A.shape[0]):
        C[(i // 4) * 4 + (i + 1) % 4] = A[i]


def carried_distance(A):
    for i in range(4, A.shape[0]):
        A[i] = A[i - 4] + 1


def forward(A):
    for i in range(A.shape[0] - 1):
        A[i] = A[i + 1] * 2


def prefix(A, C):
    acc = 0
    for i in range(A.shape[0]):
        acc += A[i]
        C[i] = acc
    return acc


def horner(X, C, Y):
    for i in range(X.shape[0]):
        y = 0.0
        for k in range(C.shape[0]):
            y = y * X[i] + C[k]
        Y[i] = y


def last_of(A):
    last = A[0]
    for i in range(A.shape[0]):
        t = A[i] * 2
        last = t
    return last


def reassigned(A, C):
    for i in range(A.shape[0]):
        t = A[i]
        t = t * t
        t += 1
        u, v = t, -t
        C[i] = u if u > 10 else v
    for i in range(A.shape[0]):
        t = C[i]
        C[i] = t - 1


def steps_of_types(A, B, C):
    for i in range(A.shape[0]):
        C[i] = (A[i] * HALF + B[i]) / 3


def division(A, B, C):
    for i in range(A.shape[0]):
        C[i] = A[i] // B[i] + A[i] % B[i]


def with_index(A, C):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            C[i, j] = A[i, j] * (i * j + 1) + i / (j + 1)


def chosen(A, B, C):
    for i in range(A.shape[0]):
        C[i] = A[i] if (0 <= A[i] < 4 and not B[i] > 2) or i % 2 == 0 else -B[i]


def relu(A, C):
    for i in range(A.shape[0]):
        C[i] = max(A[i], 0.0)


def nan_order(A, B, C, D):
    for i in range(A.shape[0]):
        C[i] = max(A[i], B[i])
        D[i] = min(B[i], A[i], 0.0)


def numpys(A, B, C):
    for i in range(A.shape[0]):
        C[i] = np.maximum(A[i], np.minimum(B[i], 2)) + np.sqrt(np.abs(A[i])) * np.where(
            A[i] > B[i], 1.0, A[i]
        )


def transcendental(A, C):
    for i in range(A.shape[0]):
        C[i] = np.exp(-A[i] * A[i]) + np.sin(A[i]) * np.arctan2(A[i], 2.0) + A[i] ** 2


def maths(A, C):
    for i in range(A.shape[0]):
        C[i] = math.sqrt(abs(A[i])) + math.fabs(A[i]) * math.pi


def casts(A, B, C):
    for i in range(A.shape[0]):
        B[i] = int(A[i]) + np.int8(i)
        C[i] = float(B[i]) + A[i].astype(np.float32)


def narrowing(A, C):
    for i in range(A.shape[0]):
        C[i] = A[i] * 1.5


def flags(A, C):
    every = True
    some = False
    for i in range(A.shape[0]):
        C[i] = A[i] > 0
        every = every and A[i] > -9
        some = some or A[i] == 3
    return every, some


def branches(A, C):
    best = -100
    place = 0
    for i in range(A.shape[0]):
        sign = 1
        if A[i] < 0:
            sign = -1
        elif A[i] == 0:
            sign = 0
        if A[i] > best:
            best = A[i]
            place = i
        C[i] = sign
    return best, place


def imperfect(A, B, C):
    for i in range(A.shape[0]):
        C[i, 0] = B[i]
        for j in range(1, A.shape[1]):
            C[i, j] = A[i, j] + C[i, j - 1]
        B[i] = C[i, -1]


def whole_sum(A):
    acc = 0.0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            acc += A[i, j]
            acc -= A[i, 0]
    return acc


def annotated(A, C):
    acc = 0
    for i in parallel(range(A.shape[0])):
        C[i] = A[i]
    for i in reduction(range(A.shape[0])):
        acc += A[i]
    return acc


def by_number(A, C, n, alpha):
    n = n + 1
    for i in range(n):
        C[i] = A[n - 1 - i] * alpha
    return n * 2


def chained(A, C):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            C[i][j] = A[i][j]


def never(A, C):
    t = 3
    for i in range(5, 5):
        C[i] = A[i]
        t = t + 1
    for i in range(A.shape[0], 0):
        C[i] = A[i]
    return t


def scalar_only(x, n):
    y = x
    for _ in range(n):
        y = y * x + 1
    return y


def stencil(A, C):
    for t in range(3):
        for i in range(1, A.shape[0] - 1):
            C[i] = (A[i - 1] + 2 * A[i] + A[i + 1]) / 4
        for i in range(1, A.shape[0] - 1):
            A[i] = C[i] + t


def shadowed(A, C):
    for i in range(A.shape[0]):
        t = A[i, 0]
        for j in range(A.shape[1]):
            t = A[i, j] + 1
            C[i, j] = t
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            C[i, j] = C[i, j] * 2


def tests(A, C):
    for i in range(A.shape[0]):
        C[i] = 1 if np.isnan(A[i]) else 2 if np.isinf(A[i]) else 3 if np.isfinite(A[i]) else 4


def pairs(A, C):
    for i in range(0, A.shape[0] - 1, 2):
        a, b = A[i + 1], A[i]
        C[i] = a
        C[i + 1] = b


def swapped(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def small_types(A, B, C):
    for i in range(A.shape[0]):
        C[i] = A[i] * B[i] + A[i] - 100


def compared_beyond(A, C):
    for i in range(A.shape[0]):
        C[i] = 1 if A[i] < 300 else 0
        C[i] += 1 if A[i] > i - 2 else 0


def compared_past_all(A, C):
    for i in range(A.shape[0]):
        C[i] = (A[i] < 2**70) + 2 * (A[i] > -1) + 4 * (A[i] == 2**64) + 8 * (A[i] != -(2**63) - 1)
        if A[i] >= -(2**80) and i < 2**64:
            C[i] += 16


def guarded(A, C):
    for i in range(A.shape[0]):
        if A[i] > 0:
            C[i] = A[i] * 2
            if i % 3 == 1:
                C[i] += 1
        else:
            C[2 * i] = 3


def guarded_transposed(A, C):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > 0:
                C[j, i] = A[i, j]
            elif i == j:
                C[j, i] -= 1


def guarded_loop(A, C, n):
    for i in range(A.shape[0]):
        total = 0
        if A[i, 0] > 0 and n > 2:
            for j in range(n):
                C[i, j] = A[i, j] - total
                total += j
            C[i, 0] = total
        A[i, 0] = total


def guarded_sum(A, C):
    found = 0
    for i in range(A.shape[0]):
        if A[i] > 0:
            found += 1
            C[0] += A[i]
    return found


def index_numbers(A, C):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            odd = (i + j) % 2
            C[i, j] = A[i, j] * odd + (i // 3 - j % 5) + (3 - j) // 4 + (i * j) // 7 + min(j, 3) + abs(4 - i)


def index_floats(A, C):
    for i in range(A.shape[0]):
        C[i] = A[i] * 0.5 * i + float(i // 2) + np.float32(i) / 4 + (1 if i < 3 else i % 4 == 1)


def down_from_the_least(A, C, n):
    for i in range(min(A.shape[0], n) - 1, max(1, n - 20), -2):
        C[i] = A[i - 1] + i % 3
        for j in range(min(i, 5), -1, -1):
            C[j] += A[i]


def once(A, C):
    for i in range(A.shape[0]):
        for j in range(i, i + 1):
            for _ in range(3):
                C[j] += A[j]
