"use strict";

/* The page: what is selected, the two pictures of it, and the digits of its index. */

const FARTHEST_TILE = 4096; /* cells that Shift and an arrow may pass */

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

  /* As tall as the taller picture, or each as tall as its own where one is below the other, within what the window has room for. */
  setHeight() {
    const boards = Object.values(this.boards), below = matchMedia("(max-width: 600px)").matches;
    const wanted = boards.map((board) => Number(board.cells.rows) * board.height + 16);
    boards.forEach(({ canvas }, k) => {
      const height = below ? wanted[k] : Math.max(...wanted);
      canvas.style.height = `min(${Math.max(below ? 120 : 200, Math.min(640, height))}px, var(--tallest))`;
    });
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

window.tilejit = { layoutMap };
window.tilejit.explorer = new Explorer(JSON.parse(document.getElementById("data").textContent));
