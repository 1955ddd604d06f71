"""Python expressions with their precedence, so that parentheses are printed only where Python needs them."""

from __future__ import annotations

from codegen.support.dataclasses import dataclass

CHOICE, NOT, COMPARED, OR, XOR, AND, SHIFT, SUM, PRODUCT, SIGN, ATOM = range(11)
"""Python's levels of precedence, loosest first: `a if x else b`, `not`, `<`, `|`, `^`, `&`, `<<`, `+`, `*`,
`-x`."""

_BINDS = {"|": OR, "^": XOR, "&": AND, "<<": SHIFT, ">>": SHIFT, "+": SUM, "-": SUM, "*": PRODUCT}
_BINDS |= {"/": PRODUCT, "//": PRODUCT, "%": PRODUCT}
_BINDS |= dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARED)


@dataclass(frozen=True, slots=True)
class Text:
    """An expression; `binds` is the level of its outermost operator."""

    text: str
    binds: int = ATOM

    def within(self, least: int) -> str:
        """The text as an operand that must bind at least this tightly: in parentheses if it does not."""
        return self.text if self.binds >= least else f"({self.text})"


def infix(left: Text, sign: str, right: Text) -> Text:
    """left sign right, which Python groups from the left.

    Comparisons do not chain. Operands of bit operators have parentheses, because few readers know their
    precedence.
    """
    binds = _BINDS[sign]
    least = SIGN if OR <= binds <= SHIFT else binds + (binds == COMPARED)
    return Text(f"{left.within(least)} {sign} {right.within(max(least, binds + 1))}", binds)


def prefix(sign: str, operand: Text) -> Text:
    """-x, ~x or `not x`."""
    binds = NOT if sign == "not " else SIGN
    return Text(f"{sign}{operand.within(binds)}", binds)


def chosen(test: Text, then: Text, otherwise: Text) -> Text:
    """then if test else otherwise"""
    return Text(f"{then.within(NOT)} if {test.within(NOT)} else {otherwise.within(NOT)}", CHOICE)


def call(name: str, *arguments: Text | str) -> Text:
    """A call of a routine."""
    return Text(f"{name}({', '.join(x if isinstance(x, str) else x.text for x in arguments)})")
