"use strict";

/* A picture of cells on a canvas, of which only the visible ones are asked for. */

const ZOOMS = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40];
const Labeled = 18;   /* cells so high, in CSS pixels, are wide enough for their text */
const LEAST_DRAWN = 4; /* smaller cells are drawn several as one, by the first of them */
const CHARACTER = 7.3;
const ELEMENT = 0, PADDING = 1, NOTHING = 2;

class Board {
  /* cells: {rows, columns, begin(row, col, nrows, ncols, step), row(k, keys, colors, states), label(row, col)} */
  constructor(canvas, math, listener) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.math = math;
    this.N = math.of;
    this.listener = listener;
    this.zoom = 0;
    this.row = this.N(0);
    this.column = this.N(0);
    this.dx = 0;
    this.dy = 0;
    this.cursor = null;
    this.hover = null;
    this.pending = false;
    this.characters = 1;
    this.listen();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  show(cells, characters) {
    this.cells = cells;
    this.characters = characters;
    this.resize();
    this.fit();
    this.clamp();
    this.redraw();
  }

  get height() {
    return ZOOMS[this.zoom];
  }

  get cellWidth() {
    const height = this.height;
    return height < Labeled ? height : Math.max(height, Math.ceil(this.characters * CHARACTER) + 8);
  }

  resize() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.width = Math.max(1, Math.floor(box.width));
    this.tall = Math.max(1, Math.floor(box.height));
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.tall * ratio);
    if (this.cells && !this.fitted) this.fit();
    this.clamp();
    this.draw();
  }

  /* The largest cells with which all fits, or ones that show a few tiles. */
  fit() {
    this.fitted = this.width > 1;
    const rows = Number(this.cells.rows), columns = Number(this.cells.columns);
    const least = ZOOMS.indexOf(4);
    for (let zoom = ZOOMS.length - 2; zoom > least; zoom--) {
      this.zoom = zoom;
      if (rows * this.height <= this.tall && columns * this.cellWidth <= this.width) return;
    }
    this.zoom = least;
  }

  /* Keep the picture on the canvas. */
  clamp() {
    if (!this.cells) return;
    [this.row, this.dy] = this.held(this.row, this.dy, this.cells.rows, this.height, this.tall);
    [this.column, this.dx] = this.held(this.column, this.dx, this.cells.columns, this.cellWidth, this.width);
  }

  /* Whole cells of an offset in pixels go to the first cell; neither leaves [0, count - visible]. */
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
    const across = (x + this.dx) / this.cellWidth, down = (y + this.dy) / this.height;
    this.zoom = next;
    this.dx = across * this.cellWidth - x;
    this.dy = down * this.height - y;
    this.clamp();
    this.reveal(held);
    this.redraw();
  }

  middle() {
    const box = this.cursor && this.box(this.cursor);
    return box ? [box.x + box.width / 2, box.y + box.height / 2] : [this.width / 2, this.tall / 2];
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

  /* The cell under a point, or null. */
  at(x, y) {
    if (!this.cells) return null;
    const row = this.row + this.N(Math.floor((y + this.dy) / this.height));
    const column = this.column + this.N(Math.floor((x + this.dx) / this.cellWidth));
    return row < this.cells.rows && column < this.cells.columns ? { row, column } : null;
  }

  /* Where a cell is drawn, or null where it is not visible. */
  box(at) {
    const rows = Number(at.row - this.row), columns = Number(at.column - this.column);
    const width = this.cellWidth, height = this.height;
    const x = columns * width - this.dx, y = rows * height - this.dy;
    if (x + width < 0 || y + height < 0 || x > this.width || y > this.tall) return null;
    return { x, y, width, height };
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.pending = false;
    const ratio = window.devicePixelRatio || 1, colors = this.colors ||= readColors();
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.fillStyle = colors.paper;
    this.context.fillRect(0, 0, this.width, this.tall);
    if (!this.cells) return;
    if (this.cells.rows === this.N(0) || this.cells.columns === this.N(0)) return this.drawEmpty(colors);
    const grid = this.grid();
    this.fillCells(grid);
    this.drawEdges(grid);
    if (this.height >= Labeled) this.drawLabels(grid);
    this.drawMark(this.hover, true);
    this.drawMark(this.cursor, false);
    this.drawThumbs();
  }

  drawEmpty(colors) {
    this.context.fillStyle = colors.ink;
    this.context.font = "14px sans-serif";
    this.context.textAlign = "center";
    this.context.fillText("no elements", this.width / 2, this.tall / 2);
  }

  /* The visible cells: keys of tiles, colors and states, row by row. */
  grid() {
    const step = Math.max(1, Math.ceil(LEAST_DRAWN / this.height)), N = this.N;
    const height = this.height * step, width = this.cellWidth * step;
    const first = { row: this.row - (this.row % N(step)), column: this.column - (this.column % N(step)) };
    const y = -this.dy - Number(this.row - first.row) * this.height;
    const x = -this.dx - Number(this.column - first.column) * this.cellWidth;
    const left = (total, from) => Math.ceil(Number(total - from) / step);
    const rows = Math.min(Math.ceil((this.tall - y) / height), left(this.cells.rows, first.row));
    const columns = Math.min(Math.ceil((this.width - x) / width), left(this.cells.columns, first.column));
    const count = rows * columns;
    const grid = { first, rows, columns, x, y, width, height, step };
    grid.keys = new Float64Array(count);
    grid.colors = new Uint8Array(count);
    grid.states = new Uint8Array(count);
    this.cells.begin(first.row, first.column, rows, columns, step);
    for (let k = 0; k < rows; k++) {
      const part = [grid.keys, grid.colors, grid.states].map((a) => a.subarray(k * columns, (k + 1) * columns));
      this.cells.row(first.row + N(k * step), ...part);
    }
    return grid;
  }

  /* Runs of one color at a time. */
  fillCells({ rows, columns, x, y, width, height, colors, states }) {
    const context = this.context, paints = this.colors;
    for (let r = 0; r < rows; r++) {
      for (let c = 0, start = 0; c < columns; c = start) {
        const at = r * columns + c, color = colors[at], state = states[at];
        for (start = c + 1; start < columns; start++) {
          const next = r * columns + start;
          if (states[next] !== state || (state === ELEMENT && colors[next] !== color)) break;
        }
        if (state === NOTHING) continue;
        context.fillStyle = state === PADDING ? paints.hatch : paints.tiles[color];
        context.fillRect(x + c * width, y + r * height, (start - c) * width, height);
      }
    }
  }

  /* Thin lines between cells that are large, thick ones where tiles end. */
  drawEdges(grid) {
    const { rows, columns, x, y, width, height, keys, states } = grid;
    const context = this.context;
    const wide = Math.min(columns * width, this.width - x), tall = Math.min(rows * height, this.tall - y);
    if (height >= 10 && grid.step === 1) {
      context.fillStyle = this.colors.grid;
      for (let c = 1; c < columns; c++) context.fillRect(x + c * width - 0.5, y, 1, tall);
      for (let r = 1; r < rows; r++) context.fillRect(x, y + r * height - 0.5, wide, 1);
    }
    const differ = (a, b) => keys[a] !== keys[b] || states[a] === NOTHING !== (states[b] === NOTHING);
    const across = [], down = [];
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const at = r * columns + c;
        if (c && differ(at, at - 1)) across.push(c, r);
        if (r && differ(at, at - columns)) down.push(c, r);
      }
    }
    const thick = height >= Labeled ? 2 : 1;
    context.fillStyle = this.colors.edge;
    if (width >= 8 || across.length < 0.4 * rows * columns) {
      for (let k = 0; k < across.length; k += 2) {
        context.fillRect(x + across[k] * width - thick / 2, y + across[k + 1] * height, thick, height);
      }
    }
    if (height >= 8 || down.length < 0.4 * rows * columns) {
      for (let k = 0; k < down.length; k += 2) {
        context.fillRect(x + down[k] * width, y + down[k + 1] * height - thick / 2, width, thick);
      }
    }
    context.strokeStyle = this.colors.edge;
    context.lineWidth = thick;
    context.strokeRect(x, y, columns * width, rows * height);
  }

  drawLabels({ first, rows, columns, x, y, width, height, states }) {
    const context = this.context;
    context.font = "12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const state = states[r * columns + c];
        if (state === NOTHING) continue;
        const text = this.cells.label(first.row + this.N(r), first.column + this.N(c), state);
        const middle = x + (c + 0.5) * width, line = y + (r + 0.5) * height + 0.5;
        if (state === PADDING && text) {
          context.fillStyle = this.colors.paper;
          const half = (text.length * CHARACTER) / 2 + 1;
          context.fillRect(middle - half, line - 7, 2 * half, 13);
        }
        context.fillStyle = state === PADDING ? this.colors.quiet : this.colors.ink;
        context.fillText(text, middle, line);
      }
    }
  }

  drawMark(at, light) {
    const box = at && this.box(at);
    if (!box) return;
    const context = this.context, grow = Math.max(0, (7 - box.height) / 2);
    const x = box.x - grow, y = box.y - grow, width = box.width + 2 * grow, height = box.height + 2 * grow;
    context.lineWidth = light ? 3 : 5;
    context.strokeStyle = this.colors.paper;
    context.strokeRect(x, y, width, height);
    context.lineWidth = light ? 1.5 : 3;
    context.setLineDash(light ? [4, 2] : []);
    context.strokeStyle = this.colors.mark;
    context.strokeRect(x, y, width, height);
    context.setLineDash([]);
  }

  /* Bars that say which part is visible. */
  drawThumbs() {
    const shown = (first, count, cell, room) => {
      const total = Number(count), fits = room / cell;
      if (total <= fits) return null;
      const length = Math.max(16, (room * fits) / total);
      return [(Number(first) / Math.max(1, total - fits)) * (room - length), length];
    };
    const right = shown(this.row, this.cells.rows, this.height, this.tall);
    const below = shown(this.column, this.cells.columns, this.cellWidth, this.width);
    this.context.fillStyle = this.colors.mark;
    this.context.globalAlpha = 0.7;
    if (right) this.context.fillRect(this.width - 5, Math.min(right[0], this.tall - right[1]), 4, right[1]);
    if (below) this.context.fillRect(Math.min(below[0], this.width - below[1]), this.tall - 5, below[1], 4);
    this.context.globalAlpha = 1;
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
    if ([this.row, this.column, this.dx, this.dy].join() !== before) event.preventDefault();
  }
}
