"""Random schedules as text: those of the compiler, changed."""

from __future__ import annotations

import re
from random import Random

SIZES = (1, 2, 3, 4, 8, 12, 15, 16, 24, 32, 48, 64, 96, 100, 128, 192, 256, 320, 1024)
ADDED = (
    *("Stage()", "Diagonal()", "CopyBlock(256)"),
    *('Prefetch("tile", 1)', 'Prefetch("column", 128)', 'Prefetch("x", 128)', 'Prefetch("entry", 2)'),
    *(f'Stream("{form}")' for form in ("given", "full", "begun", "headed", "aligned")),
    *(f'Parallel("{loop}")' for loop in ("row_tile", "column_tile", "i", "entry", "block")),
    *('Tile("row", 64)', 'Tile("column", 64)', 'Tile("row", 32, level="strip")'),
)
SHAPING = ("Vectorize", "Tail", "Stream", "Prefetch", "Table", "Assemble")
"""The directives of a copy without blocks that its tiles keep."""

ORDERS = (("row_tile", "column_tile"), ("column_tile", "row_tile"))


def directives_of(nest: str) -> str:
    """The directives of a nest as it is printed."""
    return nest.rstrip().rpartition(": ")[2]


def loops_of(nest: str) -> list[str]:
    """The axes of a nest as it is printed."""
    return [line.split()[1] for line in nest.splitlines() if line.strip().startswith("for ")]


def changed(text: str, random: Random) -> str:
    """A schedule with a few changes; passes cannot obey most of them."""
    parts = re.split(r", (?=[A-Z])", text)
    for _ in range(random.randint(1, 3)):
        k = random.randrange(len(parts))
        match random.randrange(5):
            case 0:
                parts[k] = re.sub(r"\d+", lambda _: str(random.choice(SIZES)), parts[k])
            case 1:
                other = random.randrange(len(parts))
                parts[k], parts[other] = parts[other], parts[k]
            case 2 if len(parts) > 1:
                del parts[k]
            case 3:
                parts.insert(k, random.choice(ADDED))
            case _:
                parts[k] = _reordered(parts[k], random)
    return ", ".join(parts)


def _reordered(part: str, random: Random) -> str:
    """Another order of the names of a directive."""
    names = re.findall(r'"(\w+)"', part)
    random.shuffle(names)
    return re.sub(r'"\w+"', lambda _: f'"{names.pop()}"', part)


def transposed(others: list[str], itemsize: int, random: Random) -> str:
    """A schedule of a transpose: any tiles, order and block, in place or staged, streamed or not."""
    if random.random() < 0.2:
        return carried(others, itemsize, random)
    line, lane = 64 // itemsize, max(16 // itemsize, 1)
    rows, columns = random.choice([(line, lane), (lane, line), (line, line)])
    tall, wide = rows * random.randint(1, 9), columns * random.randint(1, 9)
    stage = random.random() < 0.4
    complete = stage and random.random() < 0.5
    order = ORDERS[1][: 2 - complete] if stage else random.choice(ORDERS)
    outer = [*others, *order]
    if others and random.random() < 0.5:
        outer = [order[0], *others, *order[1:]]
    blocks = random.choice([("row", "column"), ("column", "row")])
    how = [f'Tile("row", {tall})'] * (not complete) + [f'Tile("column", {wide})']
    inner: list[str] = []
    if random.random() < 0.3 and not complete:
        how.append(f'Tile("row", {rows * random.choice([1, 2])}, level="strip")')
        inner = ["row_strip"]
    loops = ", ".join(f'"{name}"' for name in (*outer, *inner, *blocks))
    how.append(f"Reorder({loops})")
    how += [f'Parallel("{random.choice(outer)}")'] * (random.random() < 0.4)
    streams = stage or random.random() < 0.4
    how += [f"Stage({random.choice(['', 'separate=True']) if complete else ''})"] * stage
    forms = ["headed", "aligned"] if complete else ["headed"] if stage else ["given", "headed"]
    how += [f'Stream("{random.choice(forms)}")'] * streams
    how += ['Prefetch("tile", 1)'] * (streams and random.random() < 0.7)
    how += ["Diagonal()"] * (blocks == ("column", "row") and random.random() < 0.3)
    how += ['Prefetch("column", 256)'] * (random.random() < 0.2)
    how += [f"Vectorize(row={rows}, column={columns})", 'Tail("row", "clamp")', 'Tail("column", "clamp")']
    return ", ".join(how)


def carried(others: list[str], itemsize: int, random: Random) -> str:
    """A schedule of a transpose whose blocks complete lines of result rows."""
    line, columns = 64 // itemsize, random.choice([max(16 // itemsize, 1), 64 // itemsize])
    how = [f'Tile("row", {line * random.randint(1, 3)})', f'Tile("column", {columns * random.randint(1, 9)})']
    outer = ["column_tile", *others] if random.random() < 0.5 else [*others, "column_tile"]
    loops = ", ".join(f'"{name}"' for name in (*outer, "row_tile", "column", "row"))
    how += [f"Reorder({loops})", f"Vectorize(row={line}, column={columns})", 'Stream("carried")']
    how += [f'Parallel("{random.choice(outer)}")'] * (random.random() < 0.4)
    how += [random.choice(['Prefetch("tile", 1)', 'Prefetch("column", 256)'])] * (random.random() < 0.7)
    return ", ".join(how)


def tiled(nest: str, random: Random) -> str:
    """The schedule of a nest that is not a transpose, with tiles of any loops, in any order."""
    how = [x for x in re.split(r", (?=[A-Z])", directives_of(nest)) if x.startswith(SHAPING)]
    lanes = dict(re.findall(r"(\w+)=(\d+)", how[0])) if how and how[0].startswith("Vectorize") else {}
    for rows, steps in re.findall(r'Assemble\("step", rows=(\d+), steps=(\d+)', nest):
        lanes = {axis: int(rows) * int(steps) for axis in loops_of(nest) if axis in ("step", "x")}
    random.shuffle(how)
    order, outermost = list[str](), list[str]()
    for axis in (x for x in loops_of(nest) if x != "entry"):
        levels = [x for x in ("tile", "strip") if axis not in [*lanes][1:] and random.random() < 0.4]
        for level in levels:
            is_any = level == "strip" and axis != "step" and random.random() < 0.5
            size = random.choice([1, 2, 3, 5, 8, 17]) * (7 if is_any else int(lanes.get(axis, 1)))
            how.append(f'Tile("{axis}", {size}, level="{level}")')
        names = [*(f"{axis}_{level}" for level in levels), *([axis] if axis not in lanes else [])]
        outermost += names[:1]
        places = sorted(random.choices(range(len(order) + 1), k=len(names)))
        for at, name in reversed([*zip(places, names, strict=True)]):
            order.insert(at, name)
    if outermost and random.random() < 0.3:
        how.append(f'Parallel("{random.choice(outermost)}")')
    if random.random() < 0.7:
        loops = ", ".join(f'"{name}"' for name in (*order, *lanes))
        how.append(f"Reorder({loops})")
    return ", ".join(how)
