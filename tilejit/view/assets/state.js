"use strict";

/* The state of the page that a link keeps after #: selection, color, dimensions, views, theme. */

const WRITE_AFTER = 400; /* milliseconds: browsers limit how often an address may change */

class State {
  constructor(explorer) {
    this.explorer = explorer;
    this.timer = null;
    addEventListener("hashchange", () => this.apply(this.read()));
  }

  /* The pairs in the address that can be decoded. */
  read() {
    const out = {};
    for (const part of location.hash.slice(1).split("&")) {
      const at = part.indexOf("=");
      try {
        if (at > 0) out[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
      } catch (error) {
        if (!(error instanceof URIError)) throw error;
      }
    }
    return out;
  }

  /* Apply the given values; everything else stays. */
  apply(given) {
    const { explorer } = this, { map } = explorer;
    explorer.controls.takeTheme(given);
    const changed = [this.applyDimensions(given), this.applyColor(given), this.applyWidth(given)].some(Boolean);
    const slice = this.index(given.slice);
    if (slice) explorer.fixed = slice;
    if (changed || slice) explorer.firstView.arrange();
    const index = this.index(given.at), slots = given.slot === undefined ? null : integers(map, given.slot);
    if (index) explorer.select(explorer.ofIndex(index));
    else if (slots && slots.length === 1 && slots[0] < map.size) explorer.select(explorer.ofSlot(slots[0]));
    else if (changed || slice) explorer.refresh();
    if (/^\d+$/.test(given.level || "")) explorer.changeLevel(Number(given.level) - 1 - explorer.level);
    for (const [name, board] of Object.entries(explorer.boards)) this.applyView(board, given[name]);
  }

  index(text) {
    const { map } = this.explorer, found = text === undefined ? null : integers(map, text);
    return found && found.length === map.rank && map.inside(found) && !map.empty ? found : null;
  }

  applyDimensions({ rows, columns }) {
    const { explorer } = this, { rank } = explorer.map, dims = [rows, columns].map(Number);
    if (rank < 2 || dims[0] === dims[1] || !dims.every((d) => Number.isInteger(d) && d >= 0 && d < rank)) return false;
    explorer.chooseDimensions(...dims);
    explorer.controls.makeDimensions();
    return true;
  }

  applyColor({ color }) {
    const chosen = this.explorer.colorings.find((coloring) => coloring.name === color);
    if (chosen) this.explorer.color = chosen;
    return Boolean(chosen);
  }

  applyWidth({ width }) {
    if (!/^\d{1,9}$/.test(width || "") || Number(width) < 1) return false;
    this.explorer.chooseWidth(Number(width));
    return true;
  }

  /* A view: the size of cells, the ratio of their height to their width, and the first row and column. */
  applyView(board, text) {
    const { map } = this.explorer, [size, stretch, row, column] = (text || "").split(",");
    const zoom = ZOOMS.indexOf(Number(size));
    if (zoom < 0 || ![row, column].every((at) => /^\d{1,19}$/.test(at || ""))) return;
    const factor = Math.max(1, Math.min(MOST_STRETCHED, Number(stretch) || 1));
    Object.assign(board, { zoom, stretch: factor, row: map.N(row), column: map.N(column), dx: 0, dy: 0, moved: true });
    board.clamp();
    board.redraw();
  }

  /* The values that differ from a newly opened page, or that the reader chose. */
  text() {
    const { explorer } = this, { selection, map, boards } = explorer, parts = {};
    if (selection) {
      if (selection.index && !selection.padding) parts.at = selection.index.join(",");
      else parts.slot = selection.slot;
    }
    parts.color = explorer.color.name;
    if (map.rank > 1 && !map.empty) Object.assign(parts, { rows: explorer.rowDim, columns: explorer.columnDim });
    if (map.rank > 2 && !map.empty) parts.slice = explorer.fixed.join(",");
    parts.width = explorer.cells.memory.width;
    parts.level = explorer.level + 1;
    for (const [name, board] of Object.entries(boards)) {
      if (board.moved) parts[name] = [ZOOMS[board.zoom], board.stretch, board.row, board.column].join(",");
    }
    const { theme } = document.documentElement.dataset;
    if (theme && theme !== "auto") parts.theme = theme;
    return Object.entries(parts).map(([name, value]) => `${name}=${value}`).join("&");
  }

  changed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), WRITE_AFTER);
  }

  write() {
    clearTimeout(this.timer);
    history.replaceState(null, "", `#${this.text()}`);
  }
}
