"""Loops, the super-vectorizer's expected result for each, and the reason; one per row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

from codegen.analysis import report
from codegen.analysis.report import (
    BOUND,
    CARRIED,
    DIAGONAL,
    NOT_1D,
    NOT_ASKED,
    NOT_CONTIGUOUS,
    ONE_LANE,
    OTHER,
    SCAN_NOT_ASKED,
    TOO_FEW,
    UNPROFITABLE,
    UNSUPPORTED,
    VALUE,
)
from codegen.ir.nodes import Carried, For, Function, Let, Statement
from codegen.ir.values import Const, IndexValue, Value
from tests.codegen.ir.nests import (
    add,
    at,
    function,
    half,
    i,
    index,
    j,
    k,
    load,
    local,
    loop,
    m,
    n,
    number,
    op,
    over_m,
    over_n,
    plus,
    rest,
    store,
    xor,
)

REASONS = {value for name, value in vars(report).items() if name.isupper()}
"""The reasons that reports give."""

Outcome = tuple[int, ...] | str


@dataclass(frozen=True)
class Row:
    """A kernel, its options, and for each loop in source order its vector shape or the reason it has none."""

    name: str
    kernel: Function
    expected: tuple[Outcome, ...]
    sizes: tuple[int, ...] = (8,)
    options: dict[str, object] = field(default_factory=dict)


def in_lanes(row: Row) -> bool:
    """Whether any of its loops becomes super-vectors."""
    return any(isinstance(outcome, tuple) for outcome in row.expected)


def row(
    name: str,
    *body: Statement,
    gives: tuple[Outcome, ...],
    sizes: tuple[int, ...] = (8,),
    results: tuple[Value, ...] = (),
    order: str = "C",
    **options: object,
) -> Row:
    return Row(name, function(*body, results=results, order=order), gives, sizes, options)


A, B = load("A", i, j), load("B", i, j)


def copy(*subscripts: object) -> For:
    """for i, j: C[i, j] = A[subscripts]"""
    return over_n("i", over_m("j", store("C", (i, j), load("A", *subscripts))))  # type: ignore[arg-type]


def reduce(name: str, value: Value, start: Value | None = None, combine: str = "") -> Carried:
    update = op(combine or name, local("s", value.dtype), value)
    return Carried("s", start or number(3, value.dtype), update, name)


def total(name: str, dtype: str = "f32", **keywords: object) -> Statement:
    return over_n("i", carried=[reduce(name, load("A", i, dtype=dtype))], **keywords)  # type: ignore[arg-type]


S = (local("s"),)
ROW_SUMS = over_n("i", over_m("j", store("C", (i,), A, "add")))

CONTIGUOUS = (
    row("copy", over_n("i", store("C", (i,), load("A", i))), gives=((8,),)),
    row("splat", over_n("i", store("C", (i,), number(1.0))), gives=((8,),)),
    row("index as a number", over_n("i", store("C", (i,), at(i * 3))), gives=((8,),)),
    row("divided index as a number", over_n("i", store("C", (i,), at(half(i, 3)))), gives=((8,),)),
    row("argument", over_n("i", store("C", (i,), add(load("A", i), local("a")))), gives=((8,),)),
    row(
        "let",
        over_n("i", Let("t", add(load("A", i), number(1))), store("C", (i,), local("t"))),
        gives=((8,),),
    ),
    row("let outside", Let("t", number(2)), over_n("i", store("C", (i,), local("t"))), gives=((8,),)),
    row("seed, 1-D", over_n("i", over_m("j", store("C", (i, j), add(A, B)))), gives=(OTHER, (8,))),
    row(
        "seed, 2-D",
        over_n("i", over_m("j", store("C", (i, j), add(A, B)))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "seed, 2-D, fastest varying",
        over_n("i", over_m("j", store("C", (i, j), add(A, B)))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
        fastest_varying=(1, 0),
    ),
    row(
        "3-D",
        over_n("i", over_m("j", loop("k", 0, 5, store("C", (i, j, k), load("A", i, j, k))))),
        gives=((2,), (2, 4), (2, 4, 8)),
        sizes=(2, 4, 8),
    ),
    row(
        "2-D in a nest of three",
        over_n("i", over_m("j", loop("k", 0, 5, store("C", (i, j, k), load("A", i, j, k))))),
        gives=(OTHER, (4,), (4, 8)),
        sizes=(4, 8),
    ),
    row("a size of one lane goes", copy(i, j), gives=(OTHER, (8,)), sizes=(1, 8)),
    row("one lane", copy(i, j), gives=(ONE_LANE, ONE_LANE), sizes=(1,)),
    row(
        "select",
        over_n(
            "i",
            store(
                "C",
                (i,),
                op("select", op("gt", load("A", i), number(0), dtype="i1"), number(1), load("A", i)),
            ),
        ),
        gives=((8,),),
    ),
    row(
        "Fortran's order",
        over_n("i", over_m("j", store("C", (j, i), load("A", j, i)))),
        gives=(OTHER, (8,)),
        order="F",
    ),
    row("Fortran's order, walked as C", copy(i, j), gives=((8,), OTHER), order="F"),
)

MLIR_WRONG = (
    row("trips no multiple, longer array", loop("i", 0, 29, store("C", (i,), load("A", i))), gives=((8,),)),
    row("A[2*i]", over_n("i", store("C", (i,), load("A", i * 2))), gives=((8,),)),
    row("C[2*i]", over_n("i", store("C", (i * 2,), load("A", i))), gives=((8,),)),
    row("A[i // 2]", over_n("i", store("C", (i,), load("A", half(i)))), gives=((8,),)),
    row("A[i % 16]", over_n("i", store("C", (i,), load("A", rest(i, 16)))), gives=((8,),)),
    row("A[i // 3]", over_n("i", store("C", (i,), load("A", half(i, 3)))), gives=(UNPROFITABLE,)),
    row(
        "A[(i + 6) // 2] downwards",
        loop("i", n, 1, store("C", (i,), load("A", half(plus(i, 6)))), step=-2),
        gives=((8,),),
    ),
    row("A[i // 2] in place", over_n("i", store("A", (i,), load("A", half(i)))), gives=(CARRIED,)),
    row(
        "A[i // 2, j % 4], 2-D",
        over_n(
            "i", over_m("j", store("C", (i, j), add(load("A", half(i), rest(j, 4)), load("B", rest(j, 2)))))
        ),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "A[j // 2, i] in blocks",
        over_n("i", over_m("j", store("C", (i, j), add(load("A", half(j), i), load("B", j, i))))),
        gives=((8,), (8, 8)),
        sizes=(8, 8),
    ),
    row(
        "sum of A[i % 16]",
        over_n("i", carried=[reduce("add", load("A", rest(i, 16)))]),
        gives=((8,),),
        results=(local("s"),),
        reductions=True,
    ),
    row(
        "C[i, j ^ (i % 4)]",
        over_n("i", over_m("j", store("C", (i, xor(j, rest(i, 4))), op("cbrt", A)))),
        gives=(OTHER, (8,)),
    ),
    row(
        "C[i, j ^ (i % 4)], 2-D",
        over_n("i", over_m("j", store("C", (i, xor(j, rest(i, 4))), op("cbrt", A)))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "C[i ^ 1] in place", over_n("i", store("C", (xor(i, 1),), op("cbrt", load("C", i)))), gives=(CARRIED,)
    ),
    row(
        "A[i, j ^ 3]",
        over_n("i", over_m("j", store("C", (i, j), op("cbrt", load("A", i, xor(j, 3)))))),
        gives=((8,), OTHER),
    ),
    row("a copy of A[i ^ 1]", over_n("i", store("C", (i,), load("A", xor(i, 1)))), gives=(UNPROFITABLE,)),
    row(
        "bits of an index as a number",
        over_n("i", store("C", (i,), at(xor(i * 3, rest(i, 4))))),
        gives=((8,),),
    ),
    row("C[i // 2]", over_n("i", store("C", (half(i),), load("A", i))), gives=(CARRIED,)),
    row("C[i % 7] +=", over_n("i", store("C", (rest(i, 7),), load("A", i), "add")), gives=(CARRIED,)),
    row(
        "A[j // 2] along j",
        over_n("i", over_m("j", store("C", (i, j), load("A", half(j))))),
        gives=(OTHER, (8,)),
    ),
    row(
        "(i + j) % 2 as a number, 2-D",
        over_n("i", over_m("j", store("C", (i, j), add(add(A, at(rest(i + j, 2))), at(half(i - j, 3)))))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row("A[99 - i]", over_n("i", store("C", (i,), load("A", plus(i * -1, 99)))), gives=((8,),)),
    row("step of 2", loop("i", 1, n, store("C", (i,), load("A", i)), step=2), gives=((8,),)),
    row("step of -1", loop("i", n, 2, store("C", (i,), load("A", i)), step=-1), gives=((8,),)),
    row(
        "downwards to a quotient",
        loop("i", n, half(m), store("C", (i,), load("A", i)), step=-1),
        gives=((8,),),
    ),
    row(
        "downwards from the least of two",
        loop("i", [n, m], [2, half(m)], store("C", (i,), load("A", i)), step=-2),
        gives=((8,),),
    ),
    row("step of -3", loop("i", n, -1, store("C", (i,), at(i)), step=-3), gives=((8,),)),
    row("triangle", over_n("i", loop("j", 0, i, store("C", (i, j), A))), gives=(OTHER, (8,))),
    row(
        "triangle from the diagonal", over_n("i", loop("j", i, n, store("C", (i, j), A))), gives=(OTHER, (8,))
    ),
    row(
        "triangle in 2-D",
        over_n("i", loop("j", 0, i, store("C", (i, j), A))),
        gives=(BOUND, BOUND),
        sizes=(4, 8),
    ),
    row(
        "a triangle's outer loop",
        over_n("i", loop("j", 0, i, store("C", (j, i), load("A", j, i)))),
        gives=(BOUND, (8,)),
        fastest_varying=(1,),
    ),
    row(
        "A[32*i + j] along i",
        over_n("i", loop("j", 0, 32, store("C", (i * 32 + j,), load("A", i * 32 + j)))),
        gives=(OTHER, (8,)),
    ),
    row(
        "A[32*i + j] in 2-D",
        over_n("i", loop("j", 0, 32, store("C", (i * 32 + j,), load("A", i * 32 + j)))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "2-D store of lanes repeated",
        over_n("i", over_m("j", store("C", (j,), A))),
        gives=(CARRIED, CARRIED),
        sizes=(4, 8),
    ),
    row(
        "load at the outer level in 2-D",
        over_n("i", Let("b", load("B", i)), over_m("j", store("C", (i, j), add(A, local("b"))))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "store at the outer level in 2-D",
        over_n("i", store("D", (i,), load("B", i)), over_m("j", store("C", (i, j), A))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "store in a reduction",
        over_n("i", store("C", (i,), load("A", i)), carried=[reduce("add", load("A", i))]),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row("least of two bounds", loop("i", 0, [n, m], store("C", (i,), load("A", i))), gives=((8,),)),
    row(
        "largest of two bounds", loop("i", [3, plus(n, -9)], n, store("C", (i,), load("A", i))), gives=((8,),)
    ),
)

MLIR_REFUSED = (
    row("carried, read before written", over_n("i", store("A", (i,), load("A", plus(i, 1)))), gives=((8,),)),
    row("distance of the size", over_n("i", store("A", (plus(i, 8),), load("A", i))), gives=((8,),)),
    row("distance beyond the size", over_n("i", store("A", (plus(i, 9),), load("A", i))), gives=((8,),)),
    row("transposed copy, 1-D", copy(j, i), gives=(OTHER, (8,))),
    row("transposed copy, 2-D", copy(j, i), gives=((4,), (4, 8)), sizes=(4, 8)),
    row("transposed copy, fastest", copy(j, i), gives=((4,), (4, 4)), sizes=(4, 4), fastest_varying=(1, 0)),
    row(
        "C = A + B[i] in 2-D",
        over_n("i", over_m("j", store("C", (i, j), add(A, load("B", i))))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "C = A + B[j] in 2-D",
        over_n("i", over_m("j", store("C", (i, j), add(A, load("B", j))))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "C = B[3] in 2-D",
        over_n("i", over_m("j", store("C", (i, j), load("B", 3)))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
)

DEPENDENT = (
    row(
        "prefix", loop("i", 1, n, store("A", (i,), add(load("A", plus(i, -1)), number(1)))), gives=(CARRIED,)
    ),
    row(
        "distance less than the size", over_n("i", store("A", (plus(i, 7),), load("A", i))), gives=(CARRIED,)
    ),
    row(
        "distance of -1 downwards",
        loop("i", n, 0, store("A", (plus(i, -1),), load("A", i)), step=-1),
        gives=(CARRIED,),
    ),
    row(
        "forward downwards", loop("i", n, 0, store("A", (i,), load("A", plus(i, -1))), step=-1), gives=((8,),)
    ),
    row(
        "steps over what is written",
        loop("i", 0, n, store("A", (plus(i, 3),), load("A", i)), step=2),
        gives=((8,),),
    ),
    row(
        "steps on what is written",
        loop("i", 0, n, store("A", (plus(i, 4),), load("A", i)), step=2),
        gives=(CARRIED,),
    ),
    row("odd from even", over_n("i", store("A", (plus(i * 2, 1),), load("A", i * 2))), gives=((8,),)),
    row("halves apart", loop("i", 0, 20, store("A", (plus(i, 20),), load("A", i))), gives=((8,),)),
    row("reversed in place", over_n("i", store("A", (i,), load("A", n - i))), gives=(CARRIED,)),
    row("one element for all", over_n("i", store("C", (3,), load("A", i))), gives=(CARRIED,)),
    row(
        "two statements forward",
        over_n("i", store("A", (plus(i, 1),), number(2)), store("C", (i,), load("A", i))),
        gives=((8,),),
    ),
    row(
        "two statements backward",
        over_n("i", store("C", (i,), load("A", i)), store("A", (plus(i, 1),), number(2))),
        gives=(CARRIED,),
    ),
    row(
        "two stores in order",
        over_n("i", store("A", (plus(i, 1),), number(2)), store("A", (i,), number(1))),
        gives=((8,),),
    ),
    row(
        "two stores out of order",
        over_n("i", store("A", (i,), number(1)), store("A", (plus(i, 1),), number(2))),
        gives=(CARRIED,),
    ),
    row("in place", over_n("i", store("A", (i,), add(load("A", i), number(1)))), gives=((8,),)),
    row("accumulated", over_n("i", store("C", (i,), load("A", i), "add")), gives=((8,),)),
    row(
        "rows below",
        loop("i", 1, n, over_m("j", store("A", (i, j), load("A", plus(i, -1), j)))),
        gives=(OTHER, (8,)),
    ),
    row(
        "rows below, 2-D",
        loop("i", 1, n, over_m("j", store("A", (i, j), load("A", plus(i, -1), j)))),
        gives=(CARRIED, CARRIED),
        sizes=(4, 8),
    ),
    row(
        "columns",
        over_n("i", loop("j", 1, m, store("A", (i, j), load("A", i, plus(j, -1))))),
        gives=((8,), CARRIED),
    ),
    row(
        "skewed",
        loop("i", 1, n, loop("j", 0, 20, store("A", (i, j), load("A", plus(i, -1), plus(j, 1))))),
        gives=(OTHER, (8,)),
    ),
    row(
        "skewed, 2-D",
        loop("i", 1, n, loop("j", 0, 20, store("A", (i, j), load("A", plus(i, -1), plus(j, 1))))),
        gives=(CARRIED, CARRIED),
        sizes=(4, 8),
    ),
    row(
        "transposed in place, upper",
        over_n("i", loop("j", plus(i, 1), n, store("A", (i, j), load("A", j, i)))),
        gives=(OTHER, (8,)),
    ),
    row(
        "transposed in place, all",
        over_n("i", over_n("j", store("A", (i, j), load("A", j, i)))),
        gives=(OTHER, (8,)),
    ),
    row(
        "transposed in place, 2-D",
        over_n("i", over_n("j", store("A", (i, j), load("A", j, i)))),
        gives=(CARRIED, CARRIED),
        sizes=(4, 4),
    ),
    row(
        "matrix product",
        over_n(
            "i",
            over_m(
                "j", loop("k", 0, 7, store("C", (i, j), op("mul", load("A", i, k), load("B", k, j)), "add"))
            ),
        ),
        gives=(OTHER, (8,), NOT_ASKED),
    ),
    row(
        "matrix product, 2-D",
        over_n(
            "i",
            over_m(
                "j", loop("k", 0, 7, store("C", (i, j), op("mul", load("A", i, k), load("B", k, j)), "add"))
            ),
        ),
        gives=((4,), (4, 8), NOT_ASKED),
        sizes=(4, 8),
    ),
    row(
        "annotated as parallel",
        over_n("i", store("A", (i * 2,), load("A", i * 4)), parallel=True),
        gives=((8,),),
    ),
)

OTHERS = (
    row("diagonal", over_n("i", store("C", (i,), load("A", i, i))), gives=(DIAGONAL,)),
    row(
        "diagonal of another loop",
        over_n("i", over_m("j", store("C", (i, j), load("A", i, i)))),
        gives=(OTHER, (8,)),
    ),
    row(
        "divided by another index",
        over_n("i", over_m("j", store("C", (i, j), load("A", half(i), j)))),
        gives=(OTHER, (8,)),
    ),
    row(
        "stencil",
        loop("i", 1, n, store("C", (i,), add(load("A", plus(i, -1)), load("A", plus(i, 1))))),
        gives=((8,),),
    ),
    row(
        "walks columns only", over_n("i", loop("j", 0, 1, store("C", (i, j), A))), gives=((8,), UNPROFITABLE)
    ),
    row("few iterations", loop("i", 0, 20, store("C", (i,), load("A", i))), gives=((256,),), sizes=(256,)),
    row(
        "one iteration", loop("i", 0, 1, store("C", (i,), load("A", i))), gives=(UNPROFITABLE,), sizes=(256,)
    ),
    row("columns asked for", copy(i, j), gives=((8,), NOT_CONTIGUOUS), fastest_varying=(1,)),
    row("what nobody walks", copy(i, j), gives=(NOT_CONTIGUOUS, NOT_CONTIGUOUS), fastest_varying=(2,)),
    row("too few loops", over_n("i", store("C", (i,), load("A", i))), gives=(TOO_FEW,), sizes=(4, 8)),
    row("unknown operation", over_n("i", store("C", (i,), op("erf", load("A", i)))), gives=(UNSUPPORTED,)),
    row(
        "two inner loops",
        over_n("i", over_m("j", store("C", (i, j), A)), loop("k", 0, 9, store("D", (i, k), load("A", i, k)))),
        gives=(OTHER, (8,), (8,)),
    ),
    row(
        "two inner loops, 2-D",
        over_n("i", over_m("j", store("C", (i, j), A)), loop("k", 0, 9, store("D", (i, k), load("A", i, k)))),
        gives=((4,), (4, 8), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "one inner loop of two may",
        over_n(
            "i",
            over_m("j", store("C", (i, j), A)),
            loop("k", 1, 9, store("D", (i, k), load("D", i, plus(k, -1)))),
        ),
        gives=(OTHER, (8,), CARRIED),
    ),
    row(
        "two roots",
        over_n("i", store("C", (i,), load("A", i))),
        loop("i", 1, n, store("D", (i,), load("D", plus(i, -1)))),
        gives=((8,), CARRIED),
    ),
    row(
        "sum in each lane",
        over_n(
            "i",
            loop("j", 0, 9, carried=[Carried("s", number(0), add(local("s"), load("A", j, i)), "add")]),
            store("C", (i,), local("s")),
        ),
        gives=((8,), NOT_ASKED),
    ),
    row(
        "recurrence in each lane",
        over_n(
            "i",
            loop("j", 0, 9, carried=[Carried("s", load("B", i), op("sub", load("A", j, i), local("s")))]),
            store("C", (i,), local("s")),
        ),
        gives=((8,), VALUE),
    ),
)

POSITIVE = op("gt", A, number(0), dtype="i1")
EVEN = op("eq", IndexValue(rest(i, 2)), number(0, "i64"), dtype="i1")


def where(condition: Value, *subscripts: object, value: Value | None = None, combine: str = "") -> Statement:
    """C[subscripts] = value, under a condition"""
    return store("C", subscripts, value or A, combine, condition)  # type: ignore[arg-type]


CONDITIONAL = (
    row("stored where positive", over_n("i", over_m("j", where(POSITIVE, i, j))), gives=(OTHER, (8,))),
    row(
        "stored where positive, 2-D",
        over_n("i", over_m("j", where(POSITIVE, i, j))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row(
        "transposed where positive, 2-D",
        over_n("i", over_m("j", where(POSITIVE, j, i))),
        gives=((4,), (4, 8)),
        sizes=(4, 8),
    ),
    row("stored in even rows", over_n("i", over_m("j", where(EVEN, i, j))), gives=(OTHER, (8,))),
    row("stored in even lanes", over_n("i", where(EVEN, i, value=load("B", i))), gives=((8,),)),
    row("gathered, in even lanes", over_n("i", where(EVEN, i, value=load("A", half(i)))), gives=((8,),)),
    row("strided, in even lanes", over_n("i", where(EVEN, i * 3, value=load("B", i))), gives=((8,),)),
    row(
        "downwards, in even lanes",
        loop("i", n, 0, where(EVEN, i, value=load("B", i)), step=-1),
        gives=((8,),),
    ),
    row(
        "accumulated in even lanes",
        over_n("i", where(EVEN, i, value=load("B", i), combine="add")),
        gives=((8,),),
    ),
    row(
        "one or the other",
        over_n(
            "i", where(EVEN, i, value=number(1)), where(op("not", EVEN, dtype="i1"), i, value=load("B", i))
        ),
        gives=((8,),),
    ),
    row(
        "condition on what is stored before",
        over_n("i", where(op("gt", load("C", i), number(0), dtype="i1"), i, value=load("B", i))),
        gives=((8,),),
    ),
    row(
        "condition on what the iteration before stored",
        loop(
            "i", 1, n, where(op("gt", load("C", plus(i, -1)), number(0), dtype="i1"), i, value=load("B", i))
        ),
        gives=(CARRIED,),
    ),
    row(
        "two stores of one element, the second under a condition",
        over_n("i", store("C", (i,), number(2)), where(EVEN, plus(i, 1), value=load("B", i))),
        gives=(CARRIED,),
    ),
    row(
        "sums in memory where positive",
        over_n("i", over_m("j", where(POSITIVE, i, combine="add"))),
        gives=(OTHER, (8,)),
        reductions=True,
    ),
    row(
        "last where positive",
        over_n("i", over_m("j", where(POSITIVE, i))),
        gives=((8,), CARRIED),
    ),
)

SAME_ELEMENT = (
    row(
        "one iteration, one element",
        over_n("i", loop("j", i, plus(i, 1), store("C", (i,), load("A", j)))),
        gives=(BOUND, CARRIED),
    ),
    row(
        "one element, called parallel",
        over_n("i", store("C", (3,), number(1)), parallel=True),
        gives=(CARRIED,),
    ),
)

INTS = {"dtype": "i32"}
REDUCTIONS = (
    row("not asked", total("add"), gives=(NOT_ASKED,), results=S),
    row(
        "two sizes",
        over_n("i", over_m("j", carried=[reduce("add", A)])),
        gives=(NOT_1D, NOT_1D),
        sizes=(4, 8),
        reductions=True,
    ),
    *(
        row(f"{name} of f32", total(name), gives=((8,),), results=S, reductions=True)
        for name in ("add", "mul", "min", "max")
    ),
    *(
        row(
            f"{name} of i32", total(name, "i32"), gives=((8,),), results=(local("s", "i32"),), reductions=True
        )
        for name in ("add", "mul", "min", "max", "and", "or", "xor")
    ),
    *(
        row(f"{name} of u8", total(name, "u8"), gives=((8,),), results=(local("s", "u8"),), reductions=True)
        for name in ("min", "max", "and", "or", "xor")
    ),
    row(
        "subtracted",
        over_n("i", carried=[reduce("add", load("A", i), combine="sub")]),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row(
        "downwards",
        loop("i", n, 0, carried=[reduce("add", load("A", i))], step=-2),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row(
        "whole vectors",
        loop("i", 0, 32, carried=[reduce("add", load("A", i))]),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row(
        "no iteration",
        loop("i", 9, 2, carried=[reduce("min", load("A", i))]),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row(
        "of the least of bounds",
        loop("i", 0, [n, m], carried=[reduce("add", load("A", i))]),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row(
        "where a condition holds",
        over_n(
            "i",
            carried=[
                Carried(
                    "s",
                    number(0),
                    op(
                        "select",
                        op("gt", load("A", i), number(0), dtype="i1"),
                        add(local("s"), load("A", i)),
                        local("s"),
                    ),
                    "add",
                )
            ],
        ),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row(
        "through a let",
        over_n(
            "i",
            Let("t", add(local("s"), load("A", i))),
            carried=[Carried("s", number(0), add(local("t"), load("B", i)), "add")],
        ),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row(
        "scan, not asked",
        over_n("i", store("C", (i,), local("s")), carried=[reduce("add", load("A", i))]),
        gives=(SCAN_NOT_ASKED,),
        results=S,
        reductions=True,
    ),
    row(
        "no reduction",
        over_n("i", carried=[Carried("s", number(0), op("sub", load("A", i), local("s")))]),
        gives=(VALUE,),
        results=S,
        reductions=True,
    ),
    row(
        "no reduction, said to be one",
        over_n("i", carried=[Carried("s", number(0), op("sub", load("A", i), local("s")), "add")]),
        gives=(VALUE,),
        results=S,
        reductions=True,
    ),
    row(
        "each row",
        over_n(
            "i",
            over_m("j", carried=[Carried("s", number(0), add(local("s"), A), "add")]),
            store("C", (i,), local("s")),
        ),
        gives=(OTHER, (8,)),
        reductions=True,
    ),
    row(
        "all of two dimensions",
        over_n(
            "i",
            over_m("j", carried=[Carried("s", local("s"), add(local("s"), A), "add")]),
            carried=[Carried("s", number(1), local("s"), "add")],
        ),
        gives=(OTHER, (8,)),
        results=S,
        reductions=True,
    ),
    row(
        "all of two dimensions, along the outer",
        over_n(
            "i",
            over_m("j", carried=[Carried("s", local("s"), add(local("s"), load("A", j, i)), "add")]),
            carried=[Carried("s", number(1), local("s"), "add")],
        ),
        gives=((8,), OTHER),
        results=S,
        reductions=True,
    ),
    row(
        "two at once",
        over_n(
            "i",
            carried=[
                reduce("add", load("A", i)),
                Carried("t", number(9), op("min", local("t"), load("A", i)), "min"),
            ],
        ),
        gives=((8,),),
        results=(local("s"), local("t")),
        reductions=True,
    ),
    row(
        "starts from memory",
        loop("i", 0, n, store("A", (i,), number(1)), carried=[reduce("add", load("A", i), load("A", 0))]),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
    row(
        "triangle's rows",
        over_n(
            "i",
            loop("j", 0, i, carried=[Carried("s", number(0), add(local("s"), A), "add")]),
            store("C", (i,), local("s")),
        ),
        gives=(OTHER, (8,)),
        reductions=True,
    ),
    row("sums of rows in memory, not asked", ROW_SUMS, gives=((8,), NOT_ASKED)),
    row("sums of rows in memory", ROW_SUMS, gives=(OTHER, (8,)), reductions=True),
    row("sums of rows in memory, 2-D", ROW_SUMS, gives=(NOT_1D, NOT_1D), sizes=(4, 8), reductions=True),
    row(
        "products of rows in memory",
        over_n("i", over_m("j", store("C", (i,), A, "mul"), store("D", (i,), A, "max"))),
        gives=(OTHER, (8,)),
        reductions=True,
    ),
    row(
        "sums of a triangle's rows in memory",
        over_n("i", loop("j", 0, i, store("C", (plus(i, -1),), A, "add"))),
        gives=(OTHER, (8,)),
        reductions=True,
    ),
    row(
        "sums in memory that are read",
        over_n("i", over_m("j", store("C", (i,), A, "add"), store("D", (i, j), load("C", i)))),
        gives=((8,), CARRIED),
        reductions=True,
    ),
    row(
        "sums in memory of what is stored",
        over_m("j", store("C", (3,), load("A", j), "add"), store("A", (j,), number(1))),
        gives=((8,),),
        reductions=True,
    ),
    row(
        "sum and its memory at once",
        over_n("i", store("C", (3,), load("A", i), "add"), carried=[reduce("add", load("A", i))]),
        gives=((8,),),
        results=S,
        reductions=True,
    ),
)

A_I, B_I, T = load("A", i), load("B", i), local("t")
B0 = load("B", 0)
BEFORE = over_n("i", store("C", (i,), local("s")), carried=[reduce("add", A_I)])
LARGER = op("gt", A_I, local("s"), dtype="i1")


def scan(combine: str, dtype: str = "f32") -> Statement:
    """for i: s = s + A[i]; C[i] = s"""
    value = op(combine, local("s", dtype), load("A", i, dtype=dtype))
    carried = Carried("s", number(3, dtype), local("t", dtype))
    return over_n("i", Let("t", value), store("C", (i,), local("t", dtype)), carried=[carried])


def scans(name: str, *body: Statement, gives: tuple[Outcome, ...] = ((8,),), **options: object) -> Row:
    return row(f"scan, {name}", *body, gives=gives, **{"scans": True, "results": S, **options})  # type: ignore[arg-type]


SCANS = (
    *(
        scans(f"{combine} of {dtype}", scan(combine, dtype), results=(local("s", dtype),))
        for combine, dtype in product(
            ("add", "mul", "min", "max"), ("f32", "f64", "i8", "u8", "i16", "i32", "u32", "i64")
        )
    ),
    *(
        scans(f"{combine} of {dtype}", scan(combine, dtype), results=(local("s", dtype),))
        for combine, dtype in product(("and", "or", "xor"), ("i1", "i16", "u64"))
    ),
    *(
        scans(f"{combine} of {dtype}", scan(combine, dtype), results=())
        for combine, dtype in product(("min", "max"), ("bf16", "f16"))
    ),
    scans(
        "2-D",
        over_n("i", over_m("j", store("C", (i, j), local("s")), carried=[reduce("add", A)])),
        gives=(NOT_1D, NOT_1D),
        sizes=(4, 8),
        results=(),
    ),
    scans("of registers", scan("add"), sizes=(64,), gives=((64,),)),
    scans("before", BEFORE),
    scans(
        "before, in place",
        over_n("i", store("A", (i,), local("s")), carried=[reduce("add", A_I)]),
        gives=(VALUE,),
    ),
    scans(
        "in place",
        over_n(
            "i", Let("t", add(local("s"), A_I)), store("A", (i,), T), carried=[Carried("s", number(0), T)]
        ),
    ),
    scans(
        "before and after",
        over_n(
            "i",
            store("C", (i,), local("s")),
            Let("t", add(local("s"), A_I)),
            store("D", (i,), T),
            carried=[Carried("s", number(0), T)],
        ),
    ),
    scans(
        "in two steps",
        over_n(
            "i",
            Let("t", add(local("s"), A_I)),
            store("C", (i,), T),
            Let("u", add(T, B_I)),
            store("D", (i,), local("u")),
            carried=[Carried("s", number(1), local("u"))],
        ),
    ),
    scans(
        "of differences",
        over_n("i", Let("t", op("sub", local("s"), A_I)), store("C", (i,), T), carried=[Carried("s", B0, T)]),
    ),
    scans(
        "where a condition holds",
        over_n(
            "i",
            Let("t", op("select", op("gt", A_I, number(0), dtype="i1"), add(local("s"), A_I), local("s"))),
            store("C", (i,), T),
            carried=[Carried("s", number(0), T)],
        ),
    ),
    scans(
        "by a comparison",
        over_n(
            "i",
            Let("t", op("select", LARGER, A_I, local("s"))),
            store("C", (i,), T),
            carried=[Carried("s", B0, T)],
        ),
    ),
    scans(
        "by a comparison that takes NaN",
        over_n(
            "i",
            Let("t", op("select", op("gt", local("s"), A_I, dtype="i1"), local("s"), A_I)),
            store("C", (i,), T),
            carried=[Carried("s", B0, T)],
        ),
        gives=(VALUE,),
    ),
    scans(
        "of a scan",
        over_n(
            "i",
            Let("t", add(local("s"), A_I)),
            Let("u", add(local("v"), T)),
            store("C", (i,), local("u")),
            carried=[Carried("s", number(0), T), Carried("v", number(2), local("u"))],
        ),
        results=(local("s"), local("v")),
    ),
    scans(
        "of each other",
        over_n(
            "i",
            Let("t", add(local("s"), local("v"))),
            Let("u", add(local("v"), T)),
            store("C", (i,), local("u")),
            carried=[Carried("s", number(0), T), Carried("v", number(2), local("u"))],
        ),
        gives=(VALUE,),
    ),
    scans(
        "of a scan that comes later",
        over_n(
            "i",
            store("C", (i,), local("s")),
            Let("t", add(local("v"), B_I)),
            Let("u", add(local("s"), T)),
            store("D", (i,), T),
            carried=[Carried("s", number(0), local("u")), Carried("v", number(2), T)],
        ),
        gives=(VALUE,),
    ),
    scans(
        "of what is overwritten",
        over_n(
            "i",
            Let("t", add(local("s"), A_I)),
            store("A", (i,), B_I),
            Let("u", op("select", op("gt", B_I, number(0), dtype="i1"), T, local("s"))),
            store("C", (i,), local("u")),
            carried=[Carried("s", number(0), local("u"))],
        ),
        gives=(VALUE,),
    ),
    scans(
        "and a reduction",
        over_n(
            "i",
            Let("t", add(local("s"), A_I)),
            store("C", (i,), T),
            carried=[Carried("s", number(0), T), Carried("v", number(2), add(local("v"), B_I), "add")],
        ),
        results=(local("s"), local("v")),
        reductions=True,
    ),
    scans(
        "of each row",
        over_n("i", over_m("j", store("C", (i, j), local("s")), carried=[reduce("add", A)])),
        gives=(OTHER, (8,)),
        results=(),
    ),
    scans(
        "a recurrence",
        over_n(
            "i",
            Let("t", add(op("mul", local("s"), number(2)), A_I)),
            store("C", (i,), T),
            carried=[Carried("s", number(0), T)],
        ),
        gives=(VALUE,),
    ),
    scans("of a fixed number", loop("i", 0, 24, store("C", (i,), local("s")), carried=[reduce("add", A_I)])),
    scans("by 3", loop("i", 2, n, store("C", (i,), local("s")), carried=[reduce("add", A_I)], step=3)),
    scans("backward", loop("i", 30, 2, store("C", (i,), local("s")), carried=[reduce("add", A_I)], step=-1)),
    scans(
        "that is marked",
        replace(BEFORE, scan=True),
        scans=False,
    ),
)

ROWS = (
    *CONTIGUOUS,
    *MLIR_WRONG,
    *MLIR_REFUSED,
    *DEPENDENT,
    *OTHERS,
    *CONDITIONAL,
    *SAME_ELEMENT,
    *REDUCTIONS,
    *SCANS,
)

__all__ = ["ROWS", "Const", "Row", "index"]
