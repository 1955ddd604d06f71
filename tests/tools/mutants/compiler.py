"""Mutants of the compiler: passes and schedules, emitted code, loops, the store, threads and launches."""

from __future__ import annotations

from tests.tools.mutants.mutant import Mutant

PASSES_AND_SCHEDULES = (
    Mutant(
        "coalesce-one-side",
        "Loops fuse although only the destination walks them as one.",
        "for far, near in ((outer.src, inner.src), (outer.dst, inner.dst))",
        "for far, near in ((outer.dst, inner.dst),)",
        ("test_passes", "test_pack."),
    ),
    Mutant(
        "reverse-off-by-one",
        "A reversed loop starts one stride after its last element.",
        "last = axis.extent - 1",
        "last = axis.extent",
        ("test_passes", "test_copyto"),
    ),
    Mutant(
        "run-without-rest",
        "A long run that is cut into blocks for threads loses what fills no block.",
        "    if rest:\n        tail = box.with_axes(",
        "    if False:\n        tail = box.with_axes(",
        ("test_passes", "test_threads", "test_pack."),
    ),
    Mutant(
        "strips-rest-offset",
        "The rest after full strips starts at the wrong offset.",
        "tail.moved(axis.src * block * full, axis.dst * block * full)",
        "tail.moved(axis.src * full, axis.dst * full)",
        ("test_passes", "test_tuning"),
    ),
    Mutant(
        "widen-one-side",
        "Elements that are contiguous only in the destination move as one wide element.",
        "if axis.dst == axis.src == box.width and run in WIDTHS:",
        "if axis.dst == box.width and run in WIDTHS:",
        ("test_passes", "test_pack."),
    ),
    Mutant(
        "bits-at-any-stride",
        "Packed elements move as whole bytes although other strides fall inside a byte.",
        "return all(axis.stride(side) % 8 == 0 for axis in box.axes if axis is not unit)",
        "return True",
        ("test_packed_bits", "test_packed_formats", "test_packed_tiles"),
    ),
    Mutant(
        "stream-inside-lines",
        "A transpose streams lines to rows that do not begin on a line.",
        "if r % side or any(x.dst % LINE_BYTES for x in box.axes if x not in rows):",
        "if r % side:",
        ("test_goldens", "test_transposes"),
    ),
    Mutant(
        "lanes-in-any-order",
        "An instruction is selected for its shape, whatever order of lanes it makes.",
        "        if made.ravel()[: len(wanted)].tolist() != list(wanted):",
        "        if False:",
        ("test_goldens", "test_pack.", "test_copyto"),
    ),
    Mutant(
        "beyond-the-last-group",
        "The last super-vector stores lanes after the last group.",
        "return followed(loop, bodies, 1)",
        "return followed(loop, bodies, 0)",
        ("test_goldens", "test_copyto", "test_cases"),
    ),
    Mutant(
        "fold-drops-run",
        "Folding outer loops into a table forgets the run that a wide element stands for.",
        "        if run > 1:\n            kept.append(",
        "        if run > 1 and False:\n            kept.append(",
        ("test_copyto",),
    ),
)

EMITTED_CODE = (
    Mutant(
        "fence-dropped",
        "A kernel with streaming stores returns without a fence.",
        "if not streams(function.body):",
        "if True:",
        ("test_goldens",),
    ),
    Mutant(
        "part-of-a-row-forgets-rest",
        "The bytes after the last line of a part of a row do not wait for the next tile.",
        "If((finishes,), after_lines(out, held, count), (waiting,))",
        "If((finishes,), after_lines(out, held, count), ())",
        ("test_proofs", "test_large"),
    ),
    Mutant(
        "last-tile-too-narrow",
        "The last tile that is staged holds fewer columns than a block, which then begins before it.",
        'before.append(let("column_first", least(first_iteration(tile), latest)))',
        'before.append(let("column_first", first_iteration(tile)))',
        ("test_proofs", "test_large"),
    ),
    Mutant(
        "short-run-overtakes-line",
        "A run that ends before its first line is stored up to the line.",
        "head: Value = IndexValue(least(to_line(out), count))",
        "head: Value = up",
        ("test_proofs", "test_schedules"),
    ),
    Mutant(
        "last-tile-not-counted",
        "A loop that counts tiles of a size that is an argument leaves out a last one with fewer iterations.",
        "quotient(plus(*loop.upper, tile.size, -1), tile.size)",
        "quotient(plus(*loop.upper), tile.size)",
        ("test_goldens", "test_large"),
    ),
    Mutant(
        "short-run-overshoots",
        "The second move of a run of 9 to 15 bytes writes beyond its end.",
        "by_8(dst + count - 8, src + count - 8)",
        "by_8(dst + 8, src + 8)",
        ("test_copyto",),
    ),
    Mutant(
        "bf16-ties-down",
        "f32 to bf16 rounds ties down instead of to even.",
        "rounded = builder.lshr(builder.add(builder.add(bits, const(0x7FFF)), odd), const(16))",
        "rounded = builder.lshr(builder.add(bits, const(0x7FFF)), const(16))",
        ("test_casts", "test_minifloats", "test_vectors"),
    ),
    Mutant(
        "mask-one-lane-more",
        "A mask of the first lanes covers one lane too many.",
        'return builder.icmp_unsigned("<", ir.Constant(kind, list(range(lanes)))',
        'return builder.icmp_unsigned("<=", ir.Constant(kind, list(range(lanes)))',
        ("test_vectors",),
    ),
    Mutant(
        "cast-drops-sign",
        "Widening a vector of signed integers fills the upper bits with zeros.",
        "return (builder.sext if source in SIGNED else builder.zext)(value, kind)",
        "return builder.zext(value, kind)",
        ("test_vectors",),
    ),
)

LOOPS = (
    Mutant(
        "dependence-short",
        "A dependence whose distance is the last lane of the super-vector goes unnoticed.",
        "together = [apart - Affine(least[loop.number]), Affine(sizes[loop.number] - 1) - apart]",
        "together = [apart - Affine(least[loop.number]), Affine(sizes[loop.number] - 2) - apart]",
        ("test_dependence", "test_random_nests"),
    ),
    Mutant(
        "distance-trusted-too-far",
        "A promised distance covers dependences of exactly that distance.",
        "return MANY if loop.node.parallel else loop.node.min_distance",
        "return MANY if loop.node.parallel else loop.node.min_distance + 1",
        ("test_promises", "test_dependence"),
    ),
    Mutant(
        "distance-unchecked",
        "Verify mode overlooks iterations just below the promised distance.",
        "if before >= 0 and (self.loop.parallel or now - before < self.loop.min_distance):",
        "if before >= 0 and (self.loop.parallel or now - before < self.loop.min_distance - 1):",
        ("test_promises",),
    ),
    Mutant(
        "scan-step-missing",
        "A scan leaves out the step that joins the halves of a register.",
        "while half < lanes.count:",
        "while half < lanes.count // 2:",
        ("test_lower_vectors", "test_scans"),
    ),
    Mutant(
        "scan-term-too-late",
        "A scan reads its term after a store that overwrites it.",
        "& stored(node.body[read:ends])",
        "& stored(node.body[place:ends])",
        ("test_super_vectorize", "test_random_scans"),
    ),
    Mutant(
        "scan-takes-nan",
        "A running maximum takes a NaN that Python's loop skips.",
        'new = Op("select", (Op("eq", (new, new), "i1"), new, rest), self.dtype)',
        "new = new",
        ("test_scans",),
    ),
    Mutant(
        "index-at-the-extent",
        "An element that is the extent itself counts as a subscript inside the array.",
        "known = narrowed(index, (low, extent - 1), domain, self.values)",
        "known = narrowed(index, (low, extent), domain, self.values)",
        ("kernels/test_indexed",),
    ),
    Mutant(
        "last-index-unchecked",
        "The last element of an array of subscripts that a kernel uses is not checked.",
        "return slice(low, max(high + 1, low), _stride(subscript, loops))",
        "return slice(low, max(high, low), _stride(subscript, loops))",
        ("kernels/test_indexed",),
    ),
    Mutant(
        "indices-always-differ",
        "Scatters run in lanes without a promise that the subscripts differ.",
        "return index if isinstance(index, ArrayElement) and index.distinct else None",
        "return index if isinstance(index, ArrayElement) else None",
        ("kernels/test_indexed", "test_random_nests"),
    ),
    Mutant(
        "indices-may-change",
        "A kernel may write to memory that holds subscripts, after they are checked.",
        "if index in indexed:",
        "if index in ():",
        ("kernels/test_indexed",),
    ),
    Mutant(
        "mask-below-zero",
        "A mask takes negative subscripts for ones inside.",
        'yield Op("ge", (at, Const(0, "i64")), "i1")',
        'yield Op("ge", (at, Const(-1, "i64")), "i1")',
        ("kernels/test_indexed",),
    ),
    Mutant(
        "tile-any-nest",
        "A nest is tiled although a dependence goes back along an inner loop.",
        "if system.feasible(zero, rows):",
        "if not rows and system.feasible(zero, rows):",
        ("passes/test_tile", "test_random_nests"),
    ),
    Mutant(
        "tile-inside-lanes",
        "Loops inside lanes run in any order that would be legal without lanes around them.",
        "(name, lanes.get(name, 1)) for name in known",
        "(name, 1) for name in known",
        ("passes/test_tile",),
    ),
    Mutant(
        "tile-ends-early",
        "The last iteration of each tile is missing.",
        "return first, plus(first, times(levels[-1].size, loop.step // loop.size))",
        "return first, plus(first, times(levels[-1].size - 1, loop.step // loop.size))",
        ("passes/test_tile",),
    ),
    Mutant(
        "bounds-off-by-one",
        "A subscript that reaches the extent itself counts as inside the array.",
        "(low >= 0 and high < extent)",
        "(low >= 0 and high <= extent)",
        ("test_bounds", "test_errors"),
    ),
    Mutant(
        "neutral-max",
        "The lanes of a maximum start at 0, which is wrong for negative integers.",
        '"max": least, "and"',
        '"max": 0, "and"',
        ("test_super_vectorize", "test_reductions"),
    ),
    Mutant(
        "shift-in-place",
        "A shifted tail repeats iterations that have already changed what they read.",
        'return "mask" if loop.node.carried else once if stored & loaded else tail',
        'return "mask" if loop.node.carried else tail',
        ("test_kernels_of_rows", "passes/test_rows.", "kernels/test_tails"),
    ),
)

STORE_AND_THREADS = (
    Mutant(
        "key-without-compiler",
        "A kernel's key does not change with the routines it was compiled from.",
        "return StoreKey(source_digest, compiler_digest(store), *versions, *spelled)",
        'return StoreKey(source_digest, "", *versions, *spelled)',
        ("test_store",),
        own_store=True,
    ),
    Mutant(
        "checksum-unchecked",
        "A damaged entry of the store is used.",
        "if line != _first_line(head, body):",
        "if not line:",
        ("backend/test_store.", "test_store_damage"),
        own_store=True,
    ),
    Mutant(
        "forks-ignore-locks",
        "A fork does not wait for locks that were added to those it must hold.",
        "_held_by_forks = (*_held_by_forks, lock)",
        "_held_by_forks = (*_held_by_forks,)",
        ("test_fork",),
    ),
    Mutant(
        "shares-drop-rest",
        "Trips that do not divide by the number of threads are lost.",
        "even = self.trips * part // parts",
        "even = self.trips // parts * part",
        ("test_launch", "test_threads"),
    ),
)

LAUNCHES = (
    Mutant(
        "overlap-one-sided",
        "A source that starts in front of the destination and reaches into it counts as disjoint.",
        "if src[0] < dst[1] and dst[0] < src[1]:",
        "if dst[0] <= src[0] < dst[1]:",
        ("test_verify", "test_launch"),
    ),
    Mutant(
        "alignment-without-offset",
        "The guard of streaming stores looks at the buffer's address, not at the box's.",
        "if self.misaligned and ((dst + self.dst_offset) % LINE_BYTES or",
        "if self.misaligned and (dst % LINE_BYTES or",
        ("test_plan", "test_launch"),
    ),
    Mutant(
        "alias-unchecked",
        "A kernel runs in lanes although an array that it reads overlaps one that it writes.",
        "if one[1] in stored or two[1] in stored:",
        "if one[1] in stored and two[1] in stored:",
        ("/test_kernels.",),
    ),
    Mutant(
        "undecided-is-apart",
        "Arrays that are too hard to tell apart count as disjoint memory.",
        "    except np.exceptions.TooHardError:\n        return True",
        "    except np.exceptions.TooHardError:\n        return False",
        ("test_plan",),
    ),
)

COMPILER = (*PASSES_AND_SCHEDULES, *EMITTED_CODE, *LOOPS, *STORE_AND_THREADS, *LAUNCHES)
