"""Prime factors of 64-bit numbers."""

from __future__ import annotations

from math import gcd

from codegen import cached

_SMALL = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""With these bases, no composite number below 3.3e24 passes the test (Sorenson and Webster, 2015)."""


@cached(4096)
def prime_factors(number: int) -> frozenset[int]:
    """The prime factors of a positive integer.

    60 -> {2, 3, 5}    1 -> {}
    """
    found = {p for p in _SMALL if number % p == 0}
    for p in found:
        while number % p == 0:
            number //= p
    rest = [number]
    while rest:
        one = rest.pop()
        if one == 1:
            continue
        if is_prime(one):
            found.add(one)
        else:
            factor = _factor(one)
            rest += [factor, one // factor]
    return frozenset(found)


def is_prime(number: int) -> bool:
    """Whether a number is prime, by the Miller-Rabin test."""
    if number < 2 or any(number % p == 0 for p in _SMALL):
        return number in _SMALL
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(number, base, odd, twos) for base in _SMALL)


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


def _factor(number: int) -> int:
    """A divisor of a composite number without small factors, by Pollard's rho: 2^16 steps for 64 bits."""
    for shift in range(1, number):
        slow = fast = 2
        divisor = 1
        while divisor == 1:
            slow = (slow * slow + shift) % number
            fast = (fast * fast + shift) % number
            fast = (fast * fast + shift) % number
            divisor = gcd(slow - fast, number)
        if divisor != number:
            return divisor
    raise AssertionError("a composite number has a divisor")
