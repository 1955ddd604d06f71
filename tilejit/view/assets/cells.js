"use strict";

/* The cells of the two pictures: what a row of them holds, and which element or slot a cell is. */

const KEPT_ROWS = 4000;
const LONGEST_KEPT = 1024;

/* The array's cells: two dimensions of it, at a fixed index of the others. */
class ArrayCells {
  constructor(map, explorer) {
    this.map = map;
    this.explorer = explorer;
  }

  get rows() {
    const { rowDim } = this.explorer, { map } = this;
    return map.empty ? map.zero : rowDim === null ? map.one : map.padded[rowDim];
  }

  get columns() {
    const { columnDim } = this.explorer, { map } = this;
    return map.empty ? map.zero : columnDim === null ? map.one : map.padded[columnDim];
  }

  index(row, column) {
    const index = this.explorer.fixed.slice(), { rowDim, columnDim } = this.explorer;
    if (rowDim !== null) index[rowDim] = row;
    if (columnDim !== null) index[columnDim] = column;
    return index;
  }

  /* Where dimensions do not mix, a tile's key and color are sums of a part for each. */
  begin(row, column, rows, columns, step) {
    const { map } = this, depth = this.explorer.depth, { columnDim } = this.explorer;
    this.shown = { depth, columns: Array.from({ length: columns }, (_, c) => column + map.N(c * step)) };
    this.inColumns = this.shown.columns.map((at) => columnDim === null || at < map.dims[columnDim]);
    this.parts = null;
    if (!map.separable) return;
    const origin = map.tile(this.index(map.zero, map.zero), depth);
    this.parts = this.shown.columns.map((at) => {
      const tile = map.tile(this.index(map.zero, at), depth);
      return { key: tile.key - origin.key, color: tile.color - origin.color + 8 };
    });
  }

  row(row, keys, colors, states) {
    const { map, parts, inColumns } = this, { columns, depth } = this.shown, { rowDim } = this.explorer;
    const own = map.tile(this.index(row, map.zero), depth), inRows = rowDim === null || row < map.dims[rowDim];
    for (let c = 0; c < columns.length; c++) {
      const tile = parts ? parts[c] : map.tile(this.index(row, columns[c]), depth);
      keys[c] = parts ? own.key + tile.key : tile.key;
      colors[c] = parts ? (own.color + tile.color) & 7 : tile.color;
      states[c] = inRows && inColumns[c] ? ELEMENT : PADDING;
    }
  }

  label(row, column, state) {
    return state === PADDING ? "" : String(this.map.linearIndex(this.index(row, column)));
  }

  select(at) {
    const index = this.index(at.row, at.column);
    return this.explorer.ofIndex(index);
  }

  where({ index }) {
    if (!index) return null;
    const { rowDim, columnDim, fixed } = this.explorer, { zero } = this.map;
    if (index.some((i, d) => d !== rowDim && d !== columnDim && i !== fixed[d])) return null;
    return { row: rowDim === null ? zero : index[rowDim], column: columnDim === null ? zero : index[columnDim] };
  }
}

/* Memory's cells: the slots in rows of a width that the reader chooses. */
class MemoryCells {
  constructor(map, explorer) {
    this.map = map;
    this.explorer = explorer;
    this.width = map.N(map.data.width);
    this.kept = new Map();
  }

  get rows() {
    return this.map.math.div(this.map.size + this.width - this.map.one, this.width);
  }

  get columns() {
    return this.width < this.map.size ? this.width : this.map.size;
  }

  widen(width) {
    this.width = this.map.N(width);
    this.kept.clear();
  }

  /* Rows are worked out whole, unless they are long, and kept: panning meets them again. */
  begin(row, column, rows, columns, step) {
    const whole = this.width <= LONGEST_KEPT, depth = this.explorer.depth;
    const first = whole ? this.map.zero : column;
    const count = whole ? Math.ceil(Number(this.width) / step) : columns;
    const now = [first, count, step, depth].join();
    if (now !== this.now || this.kept.size > KEPT_ROWS) this.kept.clear();
    this.now = now;
    this.shown = { first, count, step, depth, skipped: Number(column - first) / step };
  }

  row(row, keys, colors, states) {
    let known = this.kept.get(row);
    if (!known) this.kept.set(row, (known = this.workedOut(row)));
    const { skipped } = this.shown, stop = skipped + keys.length;
    keys.set(known.keys.subarray(skipped, stop));
    colors.set(known.colors.subarray(skipped, stop));
    states.set(known.states.subarray(skipped, stop));
  }

  workedOut(row) {
    const { map } = this, { first, count, step, depth } = this.shown;
    const keys = new Float64Array(count), colors = new Uint8Array(count), states = new Uint8Array(count);
    for (let c = 0; c < count; c++) {
      const slot = row * this.width + first + map.N(c * step);
      if (slot >= map.size) {
        keys[c] = -1;
        states[c] = NOTHING;
        continue;
      }
      const found = map.place(slot);
      const tile = found ? map.tileOfSlot(found, depth) : { key: 0, color: 0 };
      keys[c] = tile.key;
      colors[c] = tile.color;
      states[c] = !found || found.valid ? ELEMENT : PADDING;
    }
    return { keys, colors, states };
  }

  slot(row, column) {
    return row * this.width + column;
  }

  label(row, column) {
    const found = this.map.place(this.slot(row, column));
    if (found === undefined) return "?";
    return found.valid ? found.index.join(",") || "()" : "";
  }

  select(at) {
    const slot = this.slot(at.row, at.column);
    return slot < this.map.size ? this.explorer.ofSlot(slot) : null;
  }

  where({ slot }) {
    return { row: this.map.math.div(slot, this.width), column: slot % this.width };
  }
}
