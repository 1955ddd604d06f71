"""Loads and stores of super-vectors as vector-dialect transfers, masked by the loops' bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.ir.index import ArrayElement, FromEnd, Index, Inside, index_symbols
from codegen.ir.nodes import ArrayArg, Store
from codegen.ir.print_index import IndexPrinter, SsaNames, index_cast
from codegen.ir.print_names import mlir_type, number, strided
from codegen.ir.values import IndexValue, Load, VectorShape
from codegen.ir.visit import coefficient


class TransferPrinter(IndexPrinter):
    """Writes the lines of transfers."""

    def transfer_read(self, load: Load, names: SsaNames) -> str:
        """A load of a super-vector."""
        array = self.function.array(load.array)
        kind = mlir_type(load.dtype, load.shape)
        if load.along:
            return self.gather(load, array, names)
        padding = self.constant(number(0, load.dtype), mlir_type(load.dtype))
        if _shares_subscript(load.dims) and array.rank > 1:
            where = ", ".join(self.index(s, names) for s in load.subscripts)
            operands = [self.memrefs[load.array], self.lanes_inside(load.shape, names)]
            return self.foreign("read", load, operands, where, self.memref(array), kind)
        source, where, source_kind = self.view(load, array, names)
        how = _attributes(_viewed(load.dims), max(array.rank, _varying_count(load.dims)))
        return self.emit(f"vector.transfer_read {source}[{where}], {padding}{how} : {source_kind}, {kind}")

    def gather(self, load: Load, array: ArrayArg, names: SsaNames) -> str:
        """A load in which each lane has its own subscripts: vector.gather if only the last one varies."""
        kind = mlir_type(load.dtype, load.shape)
        mask, bit, wide = self.lanes_inside(load.shape, names), *self.lane_kinds(load.shape)
        source, where, own, dims = self.own_subscripts(load, load.shape, names)
        if dims == [array.rank - 1]:
            passed = self.constant(f"dense<{number(0, load.dtype)}>", kind)
            kinds = f"{self.memref(array)}, {wide}, {bit}, {kind} into {kind}"
            return self.emit(f"vector.gather {source}[{where}] [{own[0]}], {mask}, {passed} : {kinds}")
        kinds = ", ".join([self.memref(array), *["index"] * array.rank, *[wide] * len(own), bit])
        operands = ", ".join([source, where, *own, mask])
        return self.emit(f'"tilejit.gather"({operands}) {{dims = {dims}}} : ({kinds}) -> {kind}')

    def scatter(
        self, node: Store, value: str, tested: str, dtype: str, shape: VectorShape, names: SsaNames
    ) -> None:
        """A store in which each lane has its own subscripts: vector.scatter if only the last one varies."""
        array, kind = self.function.array(node.array), mlir_type(dtype, shape)
        mask, bit, wide = self.lanes_inside(shape, names), *self.lane_kinds(shape)
        target, where, own, dims = self.own_subscripts(node, shape, names)
        mask = self.conjunction(mask, tested, bit)
        if dims == [array.rank - 1]:
            kinds = f"{self.memref(array)}, {wide}, {bit}, {kind}"
            self.line(f"vector.scatter {target}[{where}] [{own[0]}], {mask}, {value} : {kinds}")
            return
        kinds = ", ".join([kind, self.memref(array), *["index"] * array.rank, *[wide] * len(own), bit])
        operands = ", ".join([value, target, where, *own, mask])
        self.line(f'"tilejit.scatter"({operands}) {{dims = {dims}}} : ({kinds}) -> ()')

    def lane_kinds(self, shape: VectorShape) -> tuple[str, str]:
        """The types of a mask, and of a subscript for each lane."""
        return mlir_type("i1", shape), mlir_type("i64", shape)

    def lanes_inside(self, shape: VectorShape, names: SsaNames) -> str:
        """The mask of the lanes that are within the bounds of their loops."""
        lanes = list(names.lanes)[: len(shape)]
        if all(self.whole(name, names) for name in lanes):
            return self.constant("dense<true>", mlir_type("i1", shape))
        counts = ", ".join(self.left_over(name, names) for name in lanes)
        return self.pure(f"vector.create_mask {counts} : {mlir_type('i1', shape)}", names)

    def own_subscripts(
        self, access: Load | Store, shape: VectorShape, names: SsaNames
    ) -> tuple[str, str, list[str], list[int]]:
        """The array, its subscripts with 0 for those that differ by lane, and those with their dimensions."""
        moved = [bool(index_symbols(subscript) & set(access.along)) for subscript in access.subscripts]
        pairs = list(zip(access.subscripts, moved, strict=True))
        own = [
            self.index_value(IndexValue(s, "i64", shape, access.along), names) for s, moves in pairs if moves
        ]
        where = ", ".join(
            self.constant("0", "index") if moves else self.index(s, names) for s, moves in pairs
        )
        return self.memrefs[access.array], where, own, [k for k, (_, moves) in enumerate(pairs) if moves]

    def index_lanes(self, index: Index, value: IndexValue, names: SsaNames) -> str:
        """An index expression in each lane, with loaded elements."""
        shape, kind = value.shape, mlir_type("index", value.shape)
        if not index_symbols(index) & set(value.along):
            return super().index_lanes(index, value, names)
        match index:
            case ArrayElement(_, _, dtype):
                found = self.transfer_read(self.element_lanes(index, value, names), names)
                return self.pure(f"{index_cast(dtype)} {found} : {mlir_type(dtype, shape)} to {kind}", names)
            case FromEnd(of, size) | Inside(of, size):
                at, zero = self.index_lanes(of, value, names), self.constant("dense<0>", kind)
                extent = self.pure(f"vector.broadcast {self.index(size, names)} : index to {kind}", names)
                return self.held_inside(index, at, extent, zero, shape, names)
        return super().index_lanes(index, value, names)

    def element_lanes(self, element: ArrayElement, value: IndexValue, names: SsaNames) -> Load:
        """The load of an element in each lane."""
        load = Load(element.array, element.subscripts, element.dtype, value.shape)
        moves = [[coefficient(s, name) if name else 0 for s in element.subscripts] for name in value.along]
        if any(None in each for each in moves):
            return replace(load, along=value.along)
        dims = [next((k for k, c in enumerate(each) if c), None) for each in moves]
        steps = [
            1 if dim is None else (each[dim] or 0) * self.lane_step(name, names)
            for dim, each, name in zip(dims, moves, value.along, strict=True)
        ]
        return replace(load, dims=tuple(dims), steps=tuple(steps))

    def transfer_write(
        self, node: Store, value: str, tested: str, dtype: str, shape: VectorShape, names: SsaNames
    ) -> None:
        """A store of a super-vector; `tested` is a mask of its shape, or ""."""
        array = self.function.array(node.array)
        kind = mlir_type(dtype, shape)
        if node.along:
            self.scatter(node, value, tested, dtype, shape, names)
            return
        if _shares_subscript(node.dims) and array.rank > 1:
            where = ", ".join(self.index(s, names) for s in node.subscripts)
            mask = self.conjunction(self.lanes_inside(shape, names), tested, mlir_type("i1", shape))
            operands = [value, self.memrefs[node.array], mask]
            self.foreign("write", node, operands, where, self.memref(array), kind)
            return
        target, where, target_kind = self.view(node, array, names)
        is_view = target != self.memrefs[node.array]
        mask = "" if is_view else self.store_mask(node, shape, names)
        mask = self.both(mask, tested, node, shape) if tested else mask
        how = _attributes(_viewed(node.dims), max(array.rank, _varying_count(node.dims)))
        self.line(f"vector.transfer_write {value}, {target}[{where}]{mask}{how} : {kind}, {target_kind}")

    def store_mask(self, node: Store, shape: VectorShape, names: SsaNames) -> str:
        """The lane mask, in the order of the array's dimensions; "" if all lanes are always active.

        It is also "" without `masks_stores`: the caller has shown that the arrays end with the loops.
        """
        loops = list(names.lanes)
        if not self.masks_stores or all(self.whole(name, names) for name in loops):
            return ""
        order = sorted((dim, k) for k, dim in enumerate(node.dims) if dim is not None)
        counts = [
            self.constant(str(shape[k]), "index")
            if self.whole(loops[k], names)
            else self.left_over(loops[k], names)
            for _, k in order
        ]
        kind = mlir_type("i1", tuple(shape[k] for _, k in order))
        return ", " + self.pure(f"vector.create_mask {', '.join(counts)} : {kind}", names)

    def both(self, mask: str, tested: str, node: Store, shape: VectorShape) -> str:
        """The conjunction of a lane mask (array's dimension order) and a condition (vector's order)."""
        order = [k for _, k in sorted((dim, k) for k, dim in enumerate(node.dims) if dim is not None)]
        kind = mlir_type("i1", tuple(shape[k] for k in order))
        if order != sorted(order):
            tested = self.emit(f"vector.transpose {tested}, {order} : {mlir_type('i1', shape)} to {kind}")
        if mask:
            tested = self.conjunction(mask.removeprefix(", "), tested, kind)
        return f", {tested}"

    def conjunction(self, mask: str, tested: str, kind: str) -> str:
        """The conjunction of two masks of a type, the second of which may be ""."""
        return self.emit(f"arith.andi {mask}, {tested} : {kind}") if tested else mask

    def view(self, access: Load | Store, array: ArrayArg, names: SsaNames) -> tuple[str, str, str]:
        """The array, or a strided view with exactly as many elements as active lanes; indices and type."""
        where = [self.index(s, names) for s in access.subscripts]
        if _shares_subscript(access.dims):
            return self.view_of_row(access, array, where[0], names)
        if all(step == 1 for step in access.steps):
            return self.memrefs[access.array], ", ".join(where), self.memref(array)
        counts = [self.constant("1", "index")] * array.rank
        steps = list(counts)
        for name, dim, step in zip(names.lanes, access.dims, access.steps, strict=True):
            if dim is not None:
                counts[dim] = self.left_over(name, names)
                steps[dim] = self.constant(str(step), "index")
        extents = "".join("?x" for _ in range(array.rank))
        kind = f"memref<{extents}{mlir_type(array.dtype)}, {strided(array.rank)}>"
        base = self.memrefs[access.array]
        lists = "".join(f"[{', '.join(part)}]" for part in (where, counts, steps))
        view = self.pure(f"memref.subview {base}{lists} : {self.memref(array)} to {kind}", names)
        zero = self.constant("0", "index")
        return view, ", ".join([zero] * array.rank), kind

    def view_of_row(
        self, access: Load | Store, array: ArrayArg, where: str, names: SsaNames
    ) -> tuple[str, str, str]:
        """A view of a 1-D array with a dimension for each loop in its subscript: A[32*i + j]."""
        loops = [(name, step) for name, dim, step in zip(names.lanes, access.dims, access.steps, strict=True)
                 if dim is not None]  # fmt: skip
        counts = ", ".join(self.left_over(name, names) for name, _ in loops)
        steps = ", ".join(str(step) for _, step in loops)
        kind = f"memref<{'?x' * len(loops)}{mlir_type(array.dtype)}, strided<[{steps}], offset: ?>>"
        cast = f"to offset: [{where}], sizes: [{counts}], strides: [{steps}]"
        base = self.memrefs[access.array]
        view = self.pure(f"memref.reinterpret_cast {base} {cast} : {self.memref(array)} to {kind}", names)
        return view, ", ".join([self.constant("0", "index")] * len(loops)), kind

    def foreign(
        self, what: str, access: Load | Store, operands: Sequence[str], where: str, source: str, kind: str
    ) -> str:
        """A transfer that permutation maps cannot express: two vector dimensions share a subscript.

        Its mask has the vector's order.
        """
        dims = [-1 if dim is None else dim for dim in access.dims]
        attributes = f"dims = {dims}, steps = {list(access.steps)}"
        arguments = ", ".join([*operands, where])
        indices = ", ".join(["index"] * len(access.subscripts))
        call = f'"tilejit.transfer_{what}"({arguments}) {{{attributes}}}'
        if isinstance(access, Load):
            mask = mlir_type("i1", access.shape)
            return self.emit(f"{call} : ({source}, {mask}, {indices}) -> {kind}")
        mask = mlir_type("i1", access.value.shape)
        self.line(f"{call} : ({kind}, {source}, {mask}, {indices}) -> ()")
        return ""


def _shares_subscript(dims: Sequence[int | None]) -> bool:
    """Whether two vector dimensions vary the same subscript."""
    varying = [dim for dim in dims if dim is not None]
    return len(varying) != len(set(varying))


def _varying_count(dims: Sequence[int | None]) -> int:
    """The number of vector dimensions along which a subscript varies."""
    return sum(dim is not None for dim in dims)


def _viewed(dims: Sequence[int | None]) -> tuple[int | None, ...]:
    """The dimension of the view for each vector dimension: one each if two share a dimension of the array."""
    if not _shares_subscript(dims):
        return tuple(dims)
    numbers = iter(range(len(dims)))
    return tuple(None if dim is None else next(numbers) for dim in dims)


def _attributes(dims: Sequence[int | None], rank: int) -> str:
    """The permutation map; "" if the vector's dimensions are the array's last ones, in order."""
    if tuple(dims) == tuple(range(rank - len(dims), rank)):
        return ""
    all_dims = ", ".join(f"d{k}" for k in range(rank))
    results = ", ".join("0" if dim is None else f"d{dim}" for dim in dims)
    inside = (
        f"in_bounds = [{', '.join('true' if dim is None else 'false' for dim in dims)}], "
        if None in dims
        else ""
    )
    return f" {{{inside}permutation_map = affine_map<({all_dims}) -> ({results})>}}"
