"use strict";

/* Draws a board onto a context: that of its canvas, or one that records SVG. */

class Drawing {
  constructor(board, context) {
    this.board = board;
    this.context = context;
    this.colors = board.colors;
    this.N = board.N;
  }

  draw() {
    const { board, context, colors } = this;
    context.fillStyle = colors.paper;
    context.fillRect(0, 0, board.left + board.width + 1, board.top + board.tall + 1);
    if (!board.cells) return;
    if (board.cells.rows === this.N(0) || board.cells.columns === this.N(0)) return this.drawEmpty();
    const grid = this.grid();
    this.drawNames(grid);
    context.save();
    context.beginPath();
    context.rect(board.left, board.top, board.width, board.tall);
    context.clip();
    context.translate(board.left, board.top);
    this.fillCells(grid);
    this.drawLines(grid);
    if (board.labeled) this.drawLabels(grid);
    this.drawMark(board.hover, true);
    this.drawMark(board.cursor, false);
    if (!board.labeled && grid.step === 1) this.drawCallout();
    if (board.veil !== null) this.drawVeil();
    if (context === board.context) this.drawThumbs();
    context.restore();
  }

  drawEmpty() {
    const { board, context } = this;
    context.fillStyle = this.colors.ink;
    context.font = "14px sans-serif";
    context.textAlign = "center";
    context.fillText("no elements", board.left + board.width / 2, board.top + board.tall / 2);
  }

  /* The visible cells row by row: keys of tiles at every level, colors and states. */
  grid() {
    const { board, N } = this, { cells } = board;
    const step = Math.max(1, Math.ceil(LEAST_DRAWN / board.cellWidth));
    const height = board.height * step, width = board.cellWidth * step;
    const first = { row: board.row - (board.row % N(step)), column: board.column - (board.column % N(step)) };
    const y = -board.dy - Number(board.row - first.row) * board.height;
    const x = -board.dx - Number(board.column - first.column) * board.cellWidth;
    const left = (total, from) => Math.ceil(Number(total - from) / step);
    const rows = Math.min(Math.ceil((board.tall - y) / height), left(cells.rows, first.row));
    const columns = Math.min(Math.ceil((board.width - x) / width), left(cells.columns, first.column));
    const count = rows * columns;
    const grid = { first, rows, columns, x, y, width, height, step };
    grid.keys = Array.from({ length: cells.levels }, () => new Float64Array(count));
    grid.colors = new Uint8Array(count);
    grid.states = new Uint8Array(count);
    cells.begin(first.row, first.column, rows, columns, step);
    for (let k = 0; k < rows; k++) {
      const part = (all) => all.subarray(k * columns, (k + 1) * columns);
      cells.row(first.row + N(k * step), grid.keys.map(part), part(grid.colors), part(grid.states));
    }
    return grid;
  }

  /* Draw the names of rows and columns, spaced by a power of two of cells so that they fit. */
  drawNames({ first, rows, columns, x, y, width, height, step }) {
    const { board, context, N } = this, { cells } = board;
    context.fillStyle = this.colors.quiet;
    context.font = `10px ${MONOSPACE}`;
    context.textBaseline = "middle";
    const spaced = (room, cell) => 2 ** Math.max(0, Math.ceil(Math.log2(room / cell)));
    if (board.left) {
      context.textAlign = "right";
      const each = N(step * spaced(12, height));
      for (let r = 0; r < rows; r++) {
        const row = first.row + N(r * step), middle = y + (r + 0.5) * height;
        if (row % each === N(0) && middle > 0 && middle < board.tall) {
          context.fillText(cells.rowName(row), board.left - 5, board.top + middle);
        }
      }
    }
    if (!board.top) return;
    context.textAlign = "center";
    const longest = cells.columnName(first.column + N((columns - 1) * step)).length;
    const each = N(step * spaced(longest * NAME_CHARACTER + 8, width));
    for (let c = 0; c < columns; c++) {
      const column = first.column + N(c * step), middle = x + (c + 0.5) * width;
      if (column % each === N(0) && middle > 0 && middle < board.width) {
        context.fillText(cells.columnName(column), board.left + middle, board.top - 8);
      }
    }
  }

  /* Fill runs of one color, aligned to whole pixels. */
  fillCells({ rows, columns, x, y, width, height, colors, states }) {
    const { context } = this, palette = this.board.cells.shaded ? this.colors.shades : this.colors.tiles;
    for (let r = 0; r < rows; r++) {
      const top = Math.round(y + r * height), bottom = Math.round(y + (r + 1) * height);
      for (let c = 0, start = 0; c < columns; c = start) {
        const at = r * columns + c, color = colors[at], state = states[at];
        for (start = c + 1; start < columns; start++) {
          const next = r * columns + start;
          if (states[next] !== state || (state === ELEMENT && colors[next] !== color)) break;
        }
        if (state === NOTHING) continue;
        const left = Math.round(x + c * width);
        context.fillStyle = state === PADDING ? this.colors.hatch : palette[color];
        context.fillRect(left, top, Math.round(x + start * width) - left, bottom - top);
      }
    }
  }

  /* Draw faint lines between cells, and stronger lines between tiles; the outermost level has the strongest. */
  drawLines(grid) {
    const { context, colors } = this, { rows, columns, x, y, width, height, keys, step } = grid;
    const { labeled } = this.board, levels = keys.length;
    const lines = this.linesOf(grid);
    const faint = labeled || (width >= 6 && height >= 6 && step === 1);
    const inner = [1, labeled ? 0.75 : 0.4];
    for (let level = levels; level >= 0; level--) {
      const cell = level === levels;
      context.fillStyle = cell ? colors.grid : colors.edge;
      const [thick, alpha] = cell ? [1, 1] : level || !this.board.cells.map.depths ? inner : [2, 1];
      context.globalAlpha = alpha;
      const thin = height >= 8 ? thick : 1, runs = lines[level];
      if (!(cell && !faint) && (width >= 5 || runs.across.cells < 0.4 * rows * columns)) {
        for (const [c, r, count] of runs.across) {
          context.fillRect(Math.round(x + c * width) - thin / 2, y + r * height, thin, count * height);
        }
      }
      if (!(cell && !faint) && (height >= 5 || runs.down.cells < 0.4 * rows * columns)) {
        for (const [c, r, count] of runs.down) {
          context.fillRect(x + c * width, Math.round(y + r * height) - thin / 2, count * width, thin);
        }
      }
    }
    context.globalAlpha = 1;
    context.strokeStyle = colors.edge;
    context.lineWidth = height >= 8 ? 2 : 1;
    context.strokeRect(x, y, columns * width, rows * height);
    this.drawOutline(lines.outline, grid);
  }

  /* For each level, and last for cells: runs [column, row, length] of lines left of cells and above them. */
  linesOf({ rows, columns, keys, states }) {
    const levels = keys.length, outline = this.board.listener.outlined(this.board), own = outline && keys[outline.depth - 1];
    const empty = () => {
      const runs = { across: [], down: [] };
      runs.across.cells = runs.down.cells = 0;
      return runs;
    };
    const lines = Array.from({ length: levels + 1 }, empty);
    lines.outline = empty();
    const levelOf = (a, b) => {
      if (states[a] === NOTHING !== (states[b] === NOTHING)) return 0;
      let level = 0;
      while (level < levels && keys[level][a] === keys[level][b]) level++;
      return level;
    };
    const add = (runs, c, r, downward) => {
      const last = runs[runs.length - 1];
      runs.cells++;
      if (last && (downward ? last[0] === c && last[1] + last[2] === r : last[1] === r && last[0] + last[2] === c)) last[2]++;
      else runs.push([c, r, 1]);
    };
    const inside = (at) => own[at] === outline.key;
    for (let c = 0; c < columns; c++) {
      for (let r = 0; r < rows; r++) {
        const at = r * columns + c;
        if (c) add(lines[levelOf(at, at - 1)].across, c, r, true);
        if (!own) continue;
        if (inside(at) !== (c > 0 && inside(at - 1))) add(lines.outline.across, c, r, true);
        if (c === columns - 1 && inside(at)) add(lines.outline.across, c + 1, r, true);
      }
    }
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const at = r * columns + c;
        if (r) add(lines[levelOf(at, at - columns)].down, c, r, false);
        if (!own) continue;
        if (inside(at) !== (r > 0 && inside(at - columns))) add(lines.outline.down, c, r, false);
        if (r === rows - 1 && inside(at)) add(lines.outline.down, c, r + 1, false);
      }
    }
    return lines;
  }

  /* Outline the selected element's tile at the current level of digits. */
  drawOutline({ across, down }, { x, y, width, height }) {
    const { context } = this;
    context.fillStyle = this.colors.mark;
    for (const [c, r, count] of across) context.fillRect(x + c * width - 1.5, y + r * height - 1.5, 3, count * height + 3);
    for (const [c, r, count] of down) context.fillRect(x + c * width - 1.5, y + r * height - 1.5, count * width + 3, 3);
  }

  drawLabels({ first, rows, columns, x, y, width, height, states }) {
    const { context, N } = this, { cells } = this.board;
    context.font = this.board.font;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const state = states[r * columns + c];
        if (state === NOTHING) continue;
        const text = cells.label(first.row + N(r), first.column + N(c), state);
        const middle = x + (c + 0.5) * width, line = y + (r + 0.5) * height + 0.5;
        context.fillStyle = state === PADDING ? this.colors.quiet : this.colors.ink;
        if (text) context.fillText(text, middle, line);
      }
    }
  }

  drawMark(at, light) {
    const { board, context, colors } = this, box = at && board.box(at);
    if (!box) return;
    const grow = Math.max(0, (7 - Math.min(box.height, box.width)) / 2);
    const frame = [box.x - board.left - grow, box.y - board.top - grow, box.width + 2 * grow, box.height + 2 * grow];
    context.lineWidth = light ? 3 : 5;
    context.strokeStyle = colors.paper;
    context.strokeRect(...frame);
    context.lineWidth = light ? 1.5 : 3;
    context.setLineDash(light ? [4, 2] : []);
    context.strokeStyle = colors.mark;
    context.strokeRect(...frame);
    context.setLineDash([]);
  }

  /* Show the contents of the selected cell beside it, if cells have no text. */
  drawCallout() {
    const { board, context, colors } = this, box = board.cursor && board.box(board.cursor);
    if (!box) return;
    const text = board.cells.callout(board.cursor.row, board.cursor.column);
    const width = text.length * 12 * CHARACTER + 10, height = 18, gap = 6;
    const x = Math.max(2, Math.min(board.width - width - 2, box.x - board.left + box.width + gap));
    const above = box.y - board.top - height - gap;
    const y = above > 0 ? above : Math.min(board.tall - height - 2, box.y - board.top + box.height + gap);
    context.fillStyle = colors.mark;
    context.fillRect(x - 1.5, y - 1.5, width + 3, height + 3);
    context.fillStyle = colors.paper;
    context.fillRect(x, y, width, height);
    context.fillStyle = colors.ink;
    context.font = `12px ${MONOSPACE}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, x + width / 2, y + height / 2 + 0.5);
  }

  /* Hide memory from a cell on: the rest of its row and all rows below. */
  drawVeil() {
    const { board, context } = this, { row, column } = board.veil;
    const y = Number(row - board.row) * board.height - board.dy, x = Number(column - board.column) * board.cellWidth - board.dx;
    context.fillStyle = this.colors.paper;
    context.globalAlpha = 0.88;
    context.fillRect(x, y, Math.max(0, board.width - x), board.height);
    context.fillRect(0, y + board.height, board.width, Math.max(0, board.tall - y - board.height));
    context.globalAlpha = 1;
  }

  /* Draw bars that show which part is visible. */
  drawThumbs() {
    const { board, context } = this;
    const shown = (first, count, cell, room) => {
      const total = Number(count), fits = room / cell;
      if (total <= fits) return null;
      const length = Math.max(16, (room * fits) / total);
      return [(Number(first) / Math.max(1, total - fits)) * (room - length), length];
    };
    const right = shown(board.row, board.cells.rows, board.height, board.tall);
    const below = shown(board.column, board.cells.columns, board.cellWidth, board.width);
    context.fillStyle = this.colors.quiet;
    context.globalAlpha = 0.8;
    if (right) context.fillRect(board.width - 5, Math.min(right[0], board.tall - right[1]), 4, right[1]);
    if (below) context.fillRect(Math.min(below[0], board.width - below[1]), board.tall - 5, below[1], 4);
    context.globalAlpha = 1;
  }
}
