"use strict";

/* A view of cells on a canvas: the visible part, its zoom, and the events of the pointer. */

const ZOOMS = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 2.5, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40];
const LABELED = 18;    /* cells of this height in CSS pixels are wide enough for their text */
const FIRST_LABELED = ZOOMS.findIndex((size) => size > LABELED);
const LEAST_DRAWN = 2; /* smaller cells are drawn in groups, each like its first cell */
const TALLEST_PLAIN = 20, MOST_STRETCHED = 6;
const CHARACTER = 0.61; /* the width of a character relative to its size */
const FONTS = [[32, 15], [24, 13], [0, 12]]; /* heights of cells, and the sizes of their text */
const NAME_CHARACTER = 6.3, NAME_HEIGHT = 16;
const MONOSPACE = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const ELEMENT = 0, PADDING = 1, NOTHING = 2;

class Board {
  /* cells: {rows, columns, levels, begin(row, col, nrows, ncols, step), row(k, keys, colors, states), label(row, col),
     rowName(row), columnName(column)} */
  constructor(canvas, math, listener) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.math = math;
    this.N = math.of;
    this.listener = listener;
    this.zoom = 0;
    this.stretch = 1;
    this.row = this.N(0);
    this.column = this.N(0);
    this.dx = 0;
    this.dy = 0;
    this.left = 0;
    this.top = 0;
    this.cursor = null;
    this.hover = null;
    this.veil = null;
    this.pending = false;
    this.characters = 1;
    this.listen();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  show(cells, characters) {
    this.cells = cells;
    this.characters = characters;
    this.moved = false;
    this.resize();
  }

  get labeled() {
    return ZOOMS[this.zoom] >= LABELED;
  }

  /* Cells without text may be higher than wide. */
  get height() {
    const size = ZOOMS[this.zoom];
    return this.labeled ? size : Math.min(Math.max(size, TALLEST_PLAIN), size * this.stretch);
  }

  get cellWidth() {
    return this.widthAt(this.zoom);
  }

  widthAt(zoom) {
    const size = ZOOMS[zoom];
    return size < LABELED ? size : Math.max(size, Math.ceil(this.characters * CHARACTER * this.fontAt(zoom)) + 8);
  }

  fontAt(zoom) {
    return FONTS.find(([height]) => ZOOMS[zoom] >= height)[1];
  }

  /* The font of the text in cells. */
  get font() {
    return `${this.fontAt(this.zoom)}px ${MONOSPACE}`;
  }

  resize() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.gutter(box);
    this.width = Math.max(1, Math.floor(box.width) - this.left);
    this.tall = Math.max(1, Math.floor(box.height) - this.top);
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.clamp();
    this.draw();
  }

  /* Room for the names of rows and columns. */
  gutter(box) {
    const last = (count) => (count > this.N(0) ? count - this.N(1) : count);
    const name = this.cells ? this.cells.rowName(last(this.cells.rows)) : "";
    const wanted = name ? Math.ceil(name.length * NAME_CHARACTER) + 8 : 0;
    this.left = wanted < 0.3 * box.width ? wanted : 0;
    this.top = this.cells && this.cells.columnName(this.N(0)) ? NAME_HEIGHT : 0;
  }

  /* The largest zoom below `end` at which these rows and columns fit; -1 if there is none. */
  zoomFor(rows, columns, end = ZOOMS.length, width = this.width, tall = this.tall) {
    for (let zoom = end - 1; zoom >= 0; zoom--) {
      if (rows * ZOOMS[zoom] <= tall && columns * this.widthAt(zoom) <= width) return zoom;
    }
    return -1;
  }

  /* Keep the picture on the canvas. */
  clamp() {
    if (!this.cells) return;
    [this.row, this.dy] = this.held(this.row, this.dy, this.cells.rows, this.height, this.tall);
    [this.column, this.dx] = this.held(this.column, this.dx, this.cells.columns, this.cellWidth, this.width);
  }

  /* Move complete cells from the offset in pixels to the first cell, and keep both within the picture. */
  held(first, pixels, count, cell, room) {
    const N = this.N, whole = Math.floor(pixels / cell);
    first += N(whole);
    pixels -= whole * cell;
    const fits = Math.floor(room / cell);
    if (first < N(0) || count <= N(fits)) return [N(0), 0];
    const last = count - N(fits) - N(1), most = Math.min((fits + 1) * cell - room, cell - 1e-6);
    if (first > last) return [last, most];
    return [first, first === last ? Math.min(pixels, most) : pixels];
  }

  pan(right, down) {
    this.moved = true;
    this.dx += right;
    this.dy += down;
    this.clamp();
    this.redraw();
  }

  /* Zoom by steps around a point of the canvas, the cursor, or the middle. */
  zoomBy(steps, x, y) {
    const next = Math.max(0, Math.min(ZOOMS.length - 1, this.zoom + steps));
    if (next === this.zoom) return;
    const held = x === undefined && this.cursor && this.box(this.cursor) ? this.cursor : null;
    if (x === undefined) [x, y] = this.middle();
    const right = x - this.left, below = y - this.top;
    const across = (right + this.dx) / this.cellWidth, down = (below + this.dy) / this.height;
    this.moved = true;
    this.zoom = next;
    this.dx = across * this.cellWidth - right;
    this.dy = down * this.height - below;
    this.clamp();
    this.reveal(held);
    this.redraw();
    this.listener.viewed();
  }

  /* Zoom in or out by at least half, because a finger has no wheel. */
  magnify(direction) {
    let steps = direction;
    const size = (at) => Math.max(ZOOMS[at], ZOOMS[this.zoom]) / Math.min(ZOOMS[at], ZOOMS[this.zoom]);
    while (ZOOMS[this.zoom + steps + direction] && size(this.zoom + steps) < 1.5) steps += direction;
    this.zoomBy(steps);
  }

  middle() {
    const box = this.cursor && this.box(this.cursor);
    return box ? [box.x + box.width / 2, box.y + box.height / 2] : [this.left + this.width / 2, this.top + this.tall / 2];
  }

  /* Bring a cell into view with a margin. */
  reveal(at) {
    if (!at || !this.cells) return;
    this.row = this.near(at.row, this.row, this.height, this.tall, "dy");
    this.column = this.near(at.column, this.column, this.cellWidth, this.width, "dx");
    this.clamp();
    this.redraw();
  }

  near(at, first, cell, room, rest) {
    const fits = Math.max(1, Math.floor(room / cell)), margin = Math.min(2, Math.floor((fits - 1) / 2));
    if (at >= first + this.N(this[rest] > 0 ? 1 : 0) && at < first + this.N(fits)) return first;
    this[rest] = 0;
    const far = at < first - this.N(fits) || at > first + this.N(2 * fits);
    const before = far ? Math.floor(fits / 3) : at < first + this.N(1) ? margin : fits - 1 - margin;
    return at < this.N(before) ? this.N(0) : at - this.N(before);
  }

  /* The cell at a point, or null. */
  at(x, y) {
    if (!this.cells || x < this.left || y < this.top) return null;
    const row = this.row + this.N(Math.floor((y - this.top + this.dy) / this.height));
    const column = this.column + this.N(Math.floor((x - this.left + this.dx) / this.cellWidth));
    return row < this.cells.rows && column < this.cells.columns ? { row, column } : null;
  }

  /* The box of a cell on the canvas, or null if it is not visible. */
  box(at) {
    const rows = Number(at.row - this.row), columns = Number(at.column - this.column);
    const width = this.cellWidth, height = this.height;
    const x = columns * width - this.dx, y = rows * height - this.dy;
    if (x + width < 0 || y + height < 0 || x > this.width || y > this.tall) return null;
    return { x: x + this.left, y: y + this.top, width, height };
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.pending = false;
    this.colors ||= readColors();
    const ratio = window.devicePixelRatio || 1;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    new Drawing(this, this.context).draw();
  }

  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      drag = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return this.listener.hover(this, this.at(event.offsetX, event.offsetY));
      const right = drag.x - event.offsetX, down = drag.y - event.offsetY;
      if (!drag.moved && Math.hypot(right, down) < 4) return;
      drag = { x: event.offsetX, y: event.offsetY, moved: true };
      canvas.classList.add("dragged");
      this.pan(right, down);
    });
    canvas.addEventListener("pointerup", (event) => {
      canvas.classList.remove("dragged");
      if (drag && drag.moved) this.listener.viewed();
      if (drag && !drag.moved) this.listener.choose(this, this.at(event.offsetX, event.offsetY));
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", () => this.listener.hover(this, null));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.listener.key(this, event));
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      return this.zoomBy(event.deltaY < 0 ? 1 : -1, event.offsetX, event.offsetY);
    }
    const before = [this.row, this.column, this.dx, this.dy].join();
    const unit = event.deltaMode === 1 ? 16 : 1;
    const [right, down] = event.shiftKey ? [event.deltaY, event.deltaX] : [event.deltaX, event.deltaY];
    this.pan(right * unit, down * unit);
    if ([this.row, this.column, this.dx, this.dy].join() === before) return;
    event.preventDefault();
    this.listener.viewed();
  }
}
