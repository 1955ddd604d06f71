"""left_inverse for strides that are not chains: larger layouts, and the parts of its search."""

from __future__ import annotations

from contextlib import suppress
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilejit.cute import Layout, NoLayoutError, left_inverse, parse
from tilejit.cute.exact.equations import Solutions
from tilejit.cute.exact.primes import is_prime, prime_factors


def gives_back(found: Layout, layout: Layout) -> bool:
    """Whether L(A(i)) = i, at every element or at 2^16 of them."""
    size = layout.size
    places = np.arange(size) if size <= 1 << 20 else np.random.default_rng(0).integers(0, size, 1 << 16)
    return bool((found(layout(places)) == places).all())


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "(100,100):(2,201)",
        "(2000,3000):(3,17001)",
        "(16,16):(1000,16001)",
        "(3,3,3,3):(1000,3001,9007,27031)",
        "(2,2):(1000003,2000017)",
        "(10,10):(2,35184372088833)",
        "(8,8,8):(9,80,700)",
        "(1000,1000):(1000,1000001)",
    ],
)
def test_found(text: str) -> None:
    layout = parse(text)
    assert gives_back(left_inverse(layout), layout)


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "(1024,1024):(1023,1025)",
        "(6,6,6,6,6,6,6,6):(1,7,50,351,2458,17207,120450,843151)",
        "(4,8,16):(1,5,1000003)",
        "(10,10,10):(11,113,1151)",
        "(1048576,1048576):(1048575,1048577)",
        "(1000,1000,1000):(1,1001,1002003)",
        "(1000000,1000000):(7,7)",
    ],
)
def test_none(text: str) -> None:
    with pytest.raises(NoLayoutError) as refusal:
        left_inverse(parse(text))
    seen = refusal.value.witness
    assert seen is not None
    assert seen.value != seen.expected == seen.index


def test_random_larger_layouts() -> None:
    """Every answer is right. Strides that come from a mixed radix have one."""
    random = np.random.default_rng(20261122)
    for _ in range(60):
        radices = [int(random.integers(2, 9)) for _ in range(4)]
        sizes = [int(random.integers(2, radix + 1)) for radix in radices]
        weights = [prod(radices[:k]) for k in range(4)]
        layout = Layout(tuple(sizes), tuple(weight + int(random.integers(0, 2)) for weight in weights))
        with suppress(NoLayoutError):
            assert gives_back(left_inverse(layout), layout)
        chain = Layout(tuple(sizes), tuple(weights))
        assert gives_back(left_inverse(chain), chain)


@pytest.mark.parametrize(
    "text",
    [
        "(2,2):(9223372036854775807,9223372036854775806)",
        "(3,3,3):(4611686018427387904,3074457345618258603,7)",
        "(2,2,2):(4611686018427387903,4611686018427387905,4611686018427387909)",
    ],
)
def test_strides_stay_within_64_bits(text: str) -> None:
    layout = parse(text)
    found = left_inverse(layout)
    assert parse(str(found)) == found
    assert [found(layout(i)) for i in range(layout.size)] == list(range(layout.size))


@given(st.integers(1, 1 << 64))
def test_prime_factors(number: int) -> None:
    found = prime_factors(number)
    rest = number
    for p in found:
        assert is_prime(p)
        while rest % p == 0:
            rest //= p
    assert rest == 1


def test_primes_agree_with_a_sieve() -> None:
    assert [n for n in range(2000) if is_prime(n)] == [
        n for n in range(2, 2000) if all(n % k for k in range(2, n) if k * k <= n)
    ]
    assert not is_prime(3215031751)  # a strong pseudoprime to the bases 2, 3, 5 and 7
    assert prime_factors(4294967291 * 4294967279) == {4294967291, 4294967279}


@given(st.data())
def test_solutions_and_their_canonical_form(data: st.DataObject) -> None:
    """Equations made from a solution keep it, and the remaining freedom has a canonical form."""
    width = data.draw(st.integers(1, 4))
    row = st.lists(st.integers(-9, 9), min_size=width, max_size=width)
    wanted, rows = data.draw(row), data.draw(st.lists(row, max_size=5))
    known: dict[bool, Solutions | None] = {}
    for backwards in (False, True):
        state: Solutions | None = Solutions()
        for _ in range(width):
            assert state is not None
            state = state.wider()
        for equation in reversed(rows) if backwards else rows:
            assert state is not None
            state = state.narrowed(equation, sum(a * b for a, b in zip(equation, wanted, strict=True)))
        known[backwards] = state
    first, second = known.values()
    assert first is not None
    assert second is not None
    right = np.array([sum(a * b for a, b in zip(r, wanted, strict=True)) for r in rows], np.int64)
    assert not first.broken(np.array(rows, np.int64).reshape(-1, width), right).any()
    assert first.canonical() == second.canonical()
