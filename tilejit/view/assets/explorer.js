"use strict";

/* The page: what is selected, the two pictures of it, and the digits of its index. */

const FARTHEST_TILE = 4096; /* cells that Shift and an arrow may pass */
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

  /* Where dimensions do not mix, a tile's key and colour are sums of a part for each. */
  begin(row, column, rows, columns, step) {
    const { map } = this, depth = this.explorer.depth, { columnDim } = this.explorer;
    this.shown = { depth, columns: Array.from({ length: columns }, (_, c) => column + map.N(c * step)) };
    this.inColumns = this.shown.columns.map((at) => columnDim === null || at < map.dims[columnDim]);
    this.parts = null;
    if (!map.separable) return;
    const origin = map.tile(this.index(map.zero, map.zero), depth);
    this.parts = this.shown.columns.map((at) => {
      const tile = map.tile(this.index(map.zero, at), depth);
      return { key: tile.key - origin.key, colour: tile.colour - origin.colour + 8 };
    });
  }

  row(row, keys, colours, states) {
    const { map, parts, inColumns } = this, { columns, depth } = this.shown, { rowDim } = this.explorer;
    const own = map.tile(this.index(row, map.zero), depth), inRows = rowDim === null || row < map.dims[rowDim];
    for (let c = 0; c < columns.length; c++) {
      const tile = parts ? parts[c] : map.tile(this.index(row, columns[c]), depth);
      keys[c] = parts ? own.key + tile.key : tile.key;
      colours[c] = parts ? (own.colour + tile.colour) & 7 : tile.colour;
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

  row(row, keys, colours, states) {
    let known = this.kept.get(row);
    if (!known) this.kept.set(row, (known = this.workedOut(row)));
    const { skipped } = this.shown, stop = skipped + keys.length;
    keys.set(known.keys.subarray(skipped, stop));
    colours.set(known.colours.subarray(skipped, stop));
    states.set(known.states.subarray(skipped, stop));
  }

  workedOut(row) {
    const { map } = this, { first, count, step, depth } = this.shown;
    const keys = new Float64Array(count), colours = new Uint8Array(count), states = new Uint8Array(count);
    for (let c = 0; c < count; c++) {
      const slot = row * this.width + first + map.N(c * step);
      if (slot >= map.size) {
        keys[c] = -1;
        states[c] = NOTHING;
        continue;
      }
      const found = map.place(slot);
      const tile = found ? map.tileOfSlot(found, depth) : { key: 0, colour: 0 };
      keys[c] = tile.key;
      colours[c] = tile.colour;
      states[c] = !found || found.valid ? ELEMENT : PADDING;
    }
    return { keys, colours, states };
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

class Explorer {
  constructor(data) {
    this.map = layoutMap(data);
    this.data = data;
    const { map } = this;
    this.fixed = map.dims.map(() => map.zero);
    this.chooseDimensions(...this.widest());
    this.cells = { array: new ArrayCells(map, this), memory: new MemoryCells(map, this) };
    this.boards = {};
    for (const name of ["array", "memory"]) {
      this.boards[name] = new Board(document.getElementById(name), map.math, this);
      this.boards[name].name = name;
    }
    this.selection = map.empty ? null : this.ofIndex(this.fixed.slice());
    this.levels = this.selection ? map.trace(this.selection.index) : [];
    const tiled = this.levels.findIndex((line) => line.depth > 0);
    this.level = tiled < 0 ? this.levels.length - 1 : tiled;
    document.getElementById("facts").textContent = factsText(data);
    this.controls = new Controls(this);
    this.showBoards();
    this.refresh();
  }

  /* The last two dimensions of more than one index, or the last two. */
  widest() {
    const { rank, dims, one } = this.map;
    const all = dims.map((_, d) => d), long = all.filter((d) => dims[d] > one).slice(-2);
    const [rows, columns] = long.length === 2 ? long : [null, null, ...all].slice(-2);
    return [rows === undefined || rank < 2 ? null : rows, rank ? columns : null];
  }

  chooseDimensions(rows, columns) {
    this.rowDim = rows;
    this.columnDim = columns;
  }

  get depth() {
    return this.levels.length ? this.levels[this.level].depth : 0;
  }

  ofIndex(index) {
    const slot = this.map.linearIndex(index);
    return { index, slot, padding: !this.map.inside(index) };
  }

  ofSlot(slot) {
    const found = this.map.place(slot), { map } = this;
    if (!found) return { index: null, slot, unknown: true };
    if (found.valid) return { index: found.index, slot, padding: false };
    const named = found.inBuffer && found.index.every((i, d) => i < map.padded[d]);
    return { index: named && map.linearIndex(found.index) === slot ? found.index : null, slot, padding: true };
  }

  /* Widths of labels change with what is shown. */
  showBoards() {
    const { map } = this;
    for (const { canvas } of Object.values(this.boards)) canvas.style.height = "";
    const last = map.dims.map((n) => String(n > map.zero ? n - map.one : n)).join(",");
    this.boards.array.show(this.cells.array, String(map.size > map.zero ? map.size - map.one : 0).length);
    this.boards.memory.show(this.cells.memory, Math.max(2, Math.min(24, last.length)));
    this.setHeight();
  }

  /* As tall as the taller picture, within what the window has room for. */
  setHeight() {
    const boards = Object.values(this.boards);
    const wanted = Math.max(...boards.map((board) => Number(board.cells.rows) * board.height));
    for (const { canvas } of boards) canvas.style.height = `min(${Math.max(200, Math.min(640, wanted + 16))}px, 56vh)`;
  }

  choose(board, at) {
    const selection = at && this.cells[board.name].select(at);
    if (selection) this.select(selection);
  }

  select(selection) {
    this.selection = selection;
    if (selection.index && !selection.padding) {
      const others = (d) => d !== this.rowDim && d !== this.columnDim;
      if (selection.index.some((i, d) => others(d) && i !== this.fixed[d])) this.fixed = selection.index.slice();
    }
    this.controls.follow();
    this.refresh();
    for (const board of Object.values(this.boards)) board.reveal(board.cursor);
  }

  refresh() {
    const { selection, boards, cells } = this;
    for (const name of ["array", "memory"]) {
      boards[name].cursor = selection && cells[name].where(selection);
      boards[name].redraw();
    }
    const status = document.getElementById("selected");
    status.textContent = selection ? selectionText(this.map, selection, this.depth) : "The array has no elements.";
    this.showDigits();
  }

  showDigits() {
    const { selection, levels, level } = this, list = document.getElementById("digits");
    const index = selection && selection.index;
    const lines = index ? this.map.trace(index) : [];
    list.replaceChildren(...lines.slice(0, level + 1).map((line, k) => levelItem(line, k === level)));
    document.getElementById("level").textContent = levels.length ? `level ${level + 1} of ${levels.length}` : "";
    document.getElementById("fewer").disabled = level <= 0;
    document.getElementById("more").disabled = level >= levels.length - 1;
  }

  changeLevel(by) {
    this.level = Math.max(0, Math.min(this.levels.length - 1, this.level + by));
    this.refresh();
  }

  hover(board, at) {
    const selection = at && this.cells[board.name].select(at);
    for (const other of Object.values(this.boards)) {
      const found = selection ? this.cells[other.name].where(selection) : null;
      if (String(Object.values(found || {})) === String(Object.values(other.hover || {}))) continue;
      other.hover = found;
      other.redraw();
    }
    const tip = selection ? selectionText(this.map, selection, this.depth) : "";
    if (board.canvas.title !== tip) board.canvas.title = tip;
  }

  /* The cell that has the focus of the keyboard in a picture. */
  cursorOf(board) {
    return board.cursor || { row: this.map.zero, column: this.map.zero };
  }

  key(board, event) {
    const cells = this.cells[board.name], { one, zero } = this.map;
    if (event.altKey || event.metaKey) return;
    const act = {
      "+": () => board.zoomBy(1), "=": () => board.zoomBy(1), "-": () => board.zoomBy(-1), "_": () => board.zoomBy(-1),
      Enter: () => this.changeLevel(1), Backspace: () => this.changeLevel(-1),
    }[event.key];
    if (act && !event.ctrlKey) {
      event.preventDefault();
      return act();
    }
    if (cells.rows === zero || cells.columns === zero) return;
    const at = { ...this.cursorOf(board) }, page = this.map.N(Math.max(1, Math.floor(board.tall / board.height) - 1));
    const arrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in arrows) this.step(board, at, arrows[event.key], event.shiftKey);
    else if (event.key === "PageUp") at.row = at.row > page ? at.row - page : zero;
    else if (event.key === "PageDown") at.row += page;
    else if (event.key === "Home") Object.assign(at, event.ctrlKey ? { row: zero, column: zero } : { column: zero });
    else if (event.key === "End") Object.assign(at, { column: cells.columns - one }, event.ctrlKey && { row: cells.rows - one });
    else return;
    event.preventDefault();
    if (at.row >= cells.rows) at.row = cells.rows - one;
    this.choose(board, this.inBuffer(board, at));
  }

  /* The last row of memory may end early. */
  inBuffer(board, at) {
    if (board.name === "memory" && this.cells.memory.slot(at.row, at.column) >= this.map.size) {
      return this.cells.memory.where({ slot: this.map.size - this.map.one });
    }
    return at;
  }

  /* One cell on, or to the next tile; memory goes on from row to row. */
  step(board, at, [down, right], toTile) {
    const cells = this.cells[board.name], key = () => this.keyOf(cells, at), before = toTile && key();
    for (let count = 0; count < FARTHEST_TILE; count++) {
      const row = at.row + this.map.N(down), column = at.column + this.map.N(right);
      if (board.name === "memory" && right) {
        const slot = cells.slot(at.row, at.column) + this.map.N(right);
        if (slot < this.map.zero || slot >= this.map.size) return;
        Object.assign(at, cells.where({ slot }));
      } else {
        if (row < this.map.zero || row >= cells.rows || column < this.map.zero || column >= cells.columns) return;
        Object.assign(at, { row, column });
      }
      if (!toTile || key() !== before) return;
    }
  }

  keyOf(cells, at) {
    const selection = cells.select(at);
    if (!selection || !selection.index) return -1;
    return this.map.tile(selection.index, this.depth).key;
  }
}

/* Fields and buttons around the pictures. */
class Controls {
  constructor(explorer) {
    this.explorer = explorer;
    const byId = (id) => document.getElementById(id);
    this.fields = { element: byId("element"), slot: byId("slot"), width: byId("width") };
    byId("fewer").addEventListener("click", () => explorer.changeLevel(-1));
    byId("more").addEventListener("click", () => explorer.changeLevel(1));
    byId("theme").addEventListener("click", () => this.nextTheme());
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => explorer.boards[button.dataset.board].zoomBy(Number(button.dataset.zoom)));
    }
    this.fields.element.addEventListener("change", () => this.goToElement());
    this.fields.slot.addEventListener("change", () => this.goToSlot());
    this.fields.width.addEventListener("change", () => this.changeWidth());
    this.fields.width.value = String(explorer.cells.memory.width);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    this.makeDimensions();
    this.follow();
  }

  refuse(field, wrong, why) {
    field.setAttribute("aria-invalid", String(wrong));
    field.setCustomValidity(wrong ? why : "");
    if (wrong) document.getElementById("selected").textContent = why;
    return wrong;
  }

  goToElement() {
    const { map } = this.explorer, field = this.fields.element, index = integers(map, field.value);
    const wrong = !index || index.length !== map.rank || !map.inside(index) || map.empty;
    const dims = `[${map.dims.join(", ")}]`;
    if (!this.refuse(field, wrong, `Write ${map.rank} indices with commas between, inside ${dims}.`)) {
      this.explorer.select(this.explorer.ofIndex(index));
    }
  }

  goToSlot() {
    const { map } = this.explorer, field = this.fields.slot, found = integers(map, field.value);
    const wrong = !found || found.length !== 1 || found[0] >= map.size;
    if (!this.refuse(field, wrong, `Write a slot from 0 to ${map.size - map.one}.`)) {
      this.explorer.select(this.explorer.ofSlot(found[0]));
    }
  }

  changeWidth() {
    const field = this.fields.width, text = field.value.trim(), width = Number(text);
    if (this.refuse(field, !/^\d{1,9}$/.test(text) || width < 1, "Write how many slots a row of memory has: 1 or more.")) return;
    this.explorer.cells.memory.widen(width);
    this.explorer.showBoards();
    this.explorer.refresh();
    this.explorer.boards.memory.reveal(this.explorer.boards.memory.cursor);
  }

  /* Which dimensions are rows and columns, and the index of each other one. */
  makeDimensions() {
    const { explorer } = this, { map } = explorer, place = document.getElementById("dimensions");
    this.steppers = [];
    place.replaceChildren();
    if (map.rank < 2 || map.empty) return;
    const options = (chosen) => map.dims.map((n, d) => {
      const option = make("option", { value: d, text: `${d} (${n})` });
      option.selected = d === chosen;
      return option;
    });
    const chooser = (label, name) => {
      const select = make("select", { id: name }, ...options(explorer[name]));
      select.addEventListener("change", () => this.chooseDimension(name, Number(select.value)));
      place.append(make("label", {}, `${label} `, select));
    };
    chooser("Rows: dimension", "rowDim");
    chooser("Columns: dimension", "columnDim");
    map.dims.forEach((n, d) => {
      if (d !== explorer.rowDim && d !== explorer.columnDim) place.append(this.stepper(d, n));
    });
  }

  chooseDimension(name, dim) {
    const { explorer } = this, other = name === "rowDim" ? "columnDim" : "rowDim";
    if (explorer[other] === dim) explorer[other] = explorer[name];
    explorer[name] = dim;
    const { selection, map } = explorer;
    if (selection.index && !selection.padding) explorer.fixed = selection.index.slice();
    explorer.fixed = explorer.fixed.map((i, d) => (i < map.dims[d] ? i : map.zero));
    this.makeDimensions();
    this.follow();
    explorer.showBoards();
    explorer.refresh();
    explorer.boards.array.reveal(explorer.boards.array.cursor);
    document.getElementById(name).focus();
  }

  stepper(dim, extent) {
    const field = make("input", { type: "text", inputmode: "numeric", size: String(extent).length + 1, "aria-label": `index of dimension ${dim}` });
    const go = (value) => {
      const { explorer } = this, { map } = explorer;
      const index = (explorer.selection.index || explorer.fixed).map((i, d) => (i < map.dims[d] ? i : map.zero));
      index[dim] = value < map.zero ? map.zero : value >= extent ? extent - map.one : value;
      explorer.select(explorer.ofIndex(index));
    };
    const by = (step) => go(this.explorer.fixed[dim] + this.explorer.map.N(step));
    field.addEventListener("change", () => {
      const found = integers(this.explorer.map, field.value), wrong = !found || found.length !== 1 || found[0] >= extent;
      const why = `Write an index of dimension ${dim} from 0 to ${extent - this.explorer.map.one}.`;
      if (!this.refuse(field, wrong, why)) go(found[0]);
    });
    field.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      by(step);
    });
    this.steppers.push({ dim, field });
    const button = (text, step, label) => make("button", { type: "button", text, "aria-label": label, onclick: () => by(step) });
    return make("span", { class: "stepper" }, `i${dim} `, button("\u2212", -1, `dimension ${dim}: one less`), field,
      button("+", 1, `dimension ${dim}: one more`));
  }

  /* Fields say what is selected. */
  follow() {
    const { explorer } = this, { selection } = explorer;
    for (const { dim, field } of this.steppers) field.value = String(explorer.fixed[dim]);
    if (!selection) return;
    this.fields.element.value = selection.index && !selection.padding ? selection.index.join(", ") : "";
    this.fields.slot.value = String(selection.slot);
    for (const field of Object.values(this.fields)) this.refuse(field, false, "");
  }

  nextTheme() {
    const root = document.documentElement, button = document.getElementById("theme");
    const next = { auto: "dark", dark: "light", light: "auto" }[root.dataset.theme || "auto"];
    root.dataset.theme = next;
    button.textContent = next[0].toUpperCase() + next.slice(1);
    button.setAttribute("aria-label", `Colours: ${next === "auto" ? "those of the system" : next}`);
    this.recolour();
  }

  recolour() {
    for (const board of Object.values(this.explorer.boards)) {
      board.colours = null;
      board.redraw();
    }
  }
}

window.tilejit = { layoutMap };
window.tilejit.explorer = new Explorer(JSON.parse(document.getElementById("data").textContent));
