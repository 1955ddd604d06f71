"use strict";

/* The page: the selection, its two pictures, and the digits of its index. */

const FARTHEST_TILE = 4096; /* cells that Shift and an arrow may pass */

class Explorer {
  constructor(data) {
    this.map = layoutMap(data);
    this.data = data;
    const { map } = this;
    this.colorings = this.possibleColorings();
    this.color = this.colorings.find(({ by }) => by === data.color);
    this.fixed = map.dims.map(() => map.zero);
    this.chooseDimensions(...(map.rank < 2 ? [null, map.rank ? 0 : null] : data.drawn));
    this.cells = { array: new ArrayCells(map, this), memory: new MemoryCells(map, this) };
    this.selection = null;
    this.levels = map.empty ? [] : map.trace(this.fixed);
    this.level = this.levels.length - 1;
    this.boards = {};
    for (const name of ["array", "memory"]) {
      this.boards[name] = new Board(document.getElementById(name), map.math, this);
      this.boards[name].name = name;
    }
    document.getElementById("facts").textContent = factsText(data);
    this.state = new State(this);
    this.controls = new Controls(this);
    this.selection = map.empty ? null : this.ofIndex(this.fixed.slice());
    this.refresh();
    this.firstView = new FirstView(this);
    this.firstView.arrange();
    if (!map.empty) this.selection = this.ofIndex(this.firstView.selected());
    this.controls.follow();
    this.refresh();
    for (const board of Object.values(this.boards)) board.reveal(board.cursor);
    this.state.apply(this.state.read());
    this.windowWidth = window.innerWidth;
    addEventListener("resize", () => this.arrangeUnmoved());
    new ResizeObserver(() => this.tellHeight()).observe(document.body);
  }

  /* Tell a page that contains this one in a frame how high the frame has to be. */
  tellHeight() {
    if (window !== parent) parent.postMessage({ height: document.body.offsetHeight }, "*");
  }

  /* By tile at each level, by memory order, and for swizzles by bank and by row. */
  possibleColorings() {
    const { map } = this, levels = Array.from({ length: map.depths }, (_, k) => k + 1);
    const tiles = levels.map((depth) => ({ by: "tile", depth, name: depth > 1 ? `tile${depth}` : "tile", text: map.levelName(depth) }));
    const others = this.data.colorings.filter((by) => by !== "tile");
    const texts = { order: "memory order", bank: "bank", row: "row" };
    return [...tiles, ...others.map((by) => ({ by, depth: 0, name: by, text: texts[by] }))];
  }

  chooseDimensions(rows, columns) {
    this.rowDim = rows;
    this.columnDim = columns;
  }

  /* The level of the tiles that are named and that Shift and an arrow leave: that of the colors, or the outermost. */
  get depth() {
    return this.color.depth || Math.min(1, this.map.depths);
  }

  /* Set the number of slots in a row of memory; `chosen` means by the reader. */
  chooseWidth(width, chosen = true) {
    this.widthChosen = this.widthChosen || chosen;
    this.cells.memory.widen(width);
    this.boards.memory.gutter(this.boards.memory.canvas.getBoundingClientRect());
  }

  /* The outlined tile in a picture: the selected element's at the current level of digits. */
  outlined(board) {
    const { selection, level, levels } = this, depth = levels.length ? levels[level].depth : 0;
    if (!depth || !selection || !selection.index || !board.cursor) return null;
    return { depth, key: this.map.tile(selection.index, depth).key };
  }

  /* A short message beside the buttons. */
  say(text) {
    document.getElementById("note").textContent = text;
  }

  /* Called when a picture has been moved or zoomed. */
  viewed() {
    this.state.changed();
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

  /* If the width of the window changes, arrange the view again unless the reader has moved it. */
  arrangeUnmoved() {
    if (this.windowWidth === window.innerWidth) return; /* phones show and hide their bars */
    this.windowWidth = window.innerWidth;
    if (Object.values(this.boards).some((board) => board.moved)) return;
    this.firstView.arrange();
    this.refresh();
    for (const board of Object.values(this.boards)) board.reveal(board.cursor);
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
    this.showColors();
    this.state.changed();
  }

  /* Show the meaning of the colors. */
  showColors() {
    const { by, depth } = this.color, { data, map } = this;
    const sample = (name) => {
      const element = make("span", { class: "sample" });
      element.style.background = `var(--${name})`;
      return element;
    };
    document.getElementById("padding-legend").hidden = !data.padding;
    document.getElementById("tile-legend").hidden = !map.depths;
    const several = (text, colors) => [`${text}: `, ...colors.map((color) => sample(`tile-${color}`))];
    const upTo = (count) => Array.from({ length: Math.min(8, count) }, (_, k) => k);
    const [first, bits] = data[by] || [];
    const bitsText = bits === 1 ? `bit ${first}` : `bits ${first} to ${first + bits - 1}`;
    document.getElementById("colors").replaceChildren(...({
      tile: () => several(depth ? map.levelName(depth) : "all", map.tileColors(depth)),
      order: () => ["memory order: 0 ", make("span", { class: "sample order" }), ` ${grouped(data.period - 1)}`],
      bank: () => several(`bank, ${bitsText} of the slot`, upTo(2 ** bits)),
      row: () => several(`row, ${bitsText} of the slot`, upTo(2 ** bits)),
    })[by]());
  }

  showDigits() {
    const { selection, levels, level } = this, list = document.getElementById("digits");
    const index = selection && selection.index;
    const lines = index ? this.map.trace(index) : [];
    list.replaceChildren(...lines.slice(0, level + 1).map((line, k) => levelItem(line, k === level)));
    document.getElementById("level").textContent = levels.length ? `${level + 1} of ${levels.length}` : "";
    document.getElementById("fewer").disabled = level <= 0;
    document.getElementById("more").disabled = level >= levels.length - 1;
  }

  changeLevel(by) {
    this.level = Math.max(0, Math.min(this.levels.length - 1, this.level + by));
    this.controls.follow();
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

  /* The cell with the keyboard focus in a picture. */
  cursorOf(board) {
    return board.cursor || { row: this.map.zero, column: this.map.zero };
  }

  key(board, event) {
    const cells = this.cells[board.name], { one, zero } = this.map;
    if (event.altKey || event.metaKey) return;
    const act = {
      "+": () => board.magnify(1), "=": () => board.magnify(1), "-": () => board.magnify(-1), "_": () => board.magnify(-1),
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

  /* The same cell, or the last slot if the last row of memory ends before it. */
  inBuffer(board, at) {
    if (board.name === "memory" && this.cells.memory.slot(at.row, at.column) >= this.map.size) {
      return this.cells.memory.where({ slot: this.map.size - this.map.one });
    }
    return at;
  }

  /* Move by one cell, or to the next tile; memory continues from row to row. */
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
