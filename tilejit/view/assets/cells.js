"use strict";

/* The cells of the two pictures: the contents of their rows, and the element or slot of each cell. */

const KEPT_ROWS = 4000;
const LONGEST_KEPT = 1024;

/* The base class of both kinds of cells: levels of tiles and the meaning of colors. */
class Cells {
  constructor(map, explorer) {
    this.map = map;
    this.explorer = explorer;
  }

  /* Levels of lines: the tiles, and one more inside if cells are colored by bank or by row. */
  get levels() {
    const { by } = this.explorer.color;
    return this.map.depths + (by === "bank" || by === "row" ? 1 : 0);
  }

  get shaded() {
    return this.explorer.color.by === "order";
  }

  /* Set the color of a cell, which is also its key at the extra level of a bank or a row. */
  paint(k, slot, keys, colors) {
    const { by } = this.explorer.color;
    colors[k] = this.map.colorOfSlot(slot, by);
    if (keys.length > this.map.depths) keys[this.map.depths][k] = colors[k];
  }
}

/* The cells of the array: two of its dimensions, at a fixed index of the others. */
class ArrayCells extends Cells {
  get rows() {
    const { rowDim } = this.explorer, { map } = this;
    return map.empty ? map.zero : rowDim === null ? map.one : map.padded[rowDim];
  }

  get columns() {
    const { columnDim } = this.explorer, { map } = this;
    return map.empty ? map.zero : columnDim === null ? map.one : map.padded[columnDim];
  }

  rowName(row) {
    return this.explorer.rowDim === null ? "" : String(row);
  }

  columnName(column) {
    return this.explorer.columnDim === null ? "" : String(column);
  }

  index(row, column) {
    const index = this.explorer.fixed.slice(), { rowDim, columnDim } = this.explorer;
    if (rowDim !== null) index[rowDim] = row;
    if (columnDim !== null) index[columnDim] = column;
    return index;
  }

  /* If no step mixes dimensions, slots and the keys and colors of tiles are sums with one part per dimension. */
  begin(row, column, rows, columns, step) {
    const { map } = this, { columnDim } = this.explorer;
    const shown = Array.from({ length: columns }, (_, c) => column + map.N(c * step));
    this.shown = shown;
    this.inColumns = shown.map((at) => columnDim === null || at < map.dims[columnDim]);
    this.parts = null;
    if (!map.separable) return;
    const origin = this.index(map.zero, map.zero), sum = map.sum(origin);
    const tiles = this.tiles(origin);
    this.parts = shown.map((at) => {
      const index = this.index(map.zero, at);
      const own = this.tiles(index).map((tile, k) => ({ key: tile.key - tiles[k].key, color: tile.color - tiles[k].color + 8 }));
      return { tiles: own, sum: map.sum(index) - sum };
    });
  }

  /* The element's tile at every level. */
  tiles(index) {
    return Array.from({ length: this.map.depths }, (_, k) => this.map.tile(index, k + 1));
  }

  row(row, keys, colors, states) {
    const { map, parts, inColumns, shown } = this, { rowDim, color } = this.explorer;
    const start = this.index(row, map.zero), inRows = rowDim === null || row < map.dims[rowDim];
    const own = parts && { tiles: this.tiles(start), sum: map.sum(start) };
    for (let c = 0; c < shown.length; c++) {
      const index = parts ? null : this.index(row, shown[c]), tiles = parts ? own.tiles : this.tiles(index);
      for (let k = 0; k < map.depths; k++) keys[k][c] = parts ? tiles[k].key + parts[c].tiles[k].key : tiles[k].key;
      states[c] = inRows && inColumns[c] ? ELEMENT : PADDING;
      if (color.by !== "tile") this.paint(c, map.finish(parts ? own.sum + parts[c].sum : map.sum(index)), keys, colors);
      else if (color.depth) {
        const k = color.depth - 1;
        colors[c] = parts ? (tiles[k].color + parts[c].tiles[k].color) & 7 : tiles[k].color;
      }
    }
  }

  label(row, column, state) {
    return state === PADDING ? "" : String(this.map.linearIndex(this.index(row, column)));
  }

  callout(row, column) {
    const index = this.index(row, column);
    return this.map.inside(index) ? `slot ${this.map.linearIndex(index)}` : "padding";
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

/* The cells of memory: its slots, in rows of a width that the reader can choose. */
class MemoryCells extends Cells {
  constructor(map, explorer) {
    super(map, explorer);
    this.width = map.N(map.data.width);
    this.kept = new Map();
  }

  get rows() {
    return this.map.math.div(this.map.size + this.width - this.map.one, this.width);
  }

  get columns() {
    return this.width < this.map.size ? this.width : this.map.size;
  }

  rowName(row) {
    return String(row * this.width);
  }

  columnName(column) {
    return String(column);
  }

  widen(width) {
    this.width = this.map.N(width);
    this.kept.clear();
  }

  /* Compute complete rows, unless they are long, and keep them, because panning shows them again. */
  begin(row, column, rows, columns, step) {
    const whole = this.width <= LONGEST_KEPT, { by, depth } = this.explorer.color;
    const first = whole ? this.map.zero : column;
    const count = whole ? Math.ceil(Number(this.width) / step) : columns;
    const now = [first, count, step, by, depth].join();
    if (now !== this.now || this.kept.size > KEPT_ROWS) this.kept.clear();
    this.now = now;
    this.shown = { first, count, step, skipped: Number(column - first) / step };
  }

  row(row, keys, colors, states) {
    let known = this.kept.get(row);
    if (!known) this.kept.set(row, (known = this.computed(row)));
    const { skipped } = this.shown, stop = skipped + states.length;
    keys.forEach((all, k) => all.set(known.keys[k].subarray(skipped, stop)));
    colors.set(known.colors.subarray(skipped, stop));
    states.set(known.states.subarray(skipped, stop));
  }

  computed(row) {
    const { map } = this, { first, count, step } = this.shown, { by, depth } = this.explorer.color;
    const keys = Array.from({ length: this.levels }, () => new Float64Array(count));
    const colors = new Uint8Array(count), states = new Uint8Array(count);
    for (let c = 0; c < count; c++) {
      const slot = row * this.width + first + map.N(c * step);
      if (slot >= map.size) {
        for (const all of keys) all[c] = -1;
        states[c] = NOTHING;
        continue;
      }
      const found = map.place(slot);
      for (let k = 0; k < map.depths; k++) {
        const tile = found ? map.tileOfSlot(found, k + 1) : { key: 0, color: 0 };
        keys[k][c] = tile.key;
        if (by === "tile" && k + 1 === depth) colors[c] = tile.color;
      }
      if (by !== "tile") this.paint(c, slot, keys, colors);
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

  callout(row, column) {
    const found = this.map.place(this.slot(row, column));
    return found === undefined ? "?" : found.valid ? `[${found.index.join(", ")}]` : "padding";
  }

  select(at) {
    const slot = this.slot(at.row, at.column);
    return slot < this.map.size ? this.explorer.ofSlot(slot) : null;
  }

  where({ slot }) {
    return { row: this.map.math.div(slot, this.width), column: slot % this.width };
  }
}
