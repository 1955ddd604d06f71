"use strict";

/* The initial view of a page: a complete tile, as large as the window allows. */

const MOST_SCANNED = 512; /* cells to examine for the end of a tile */
const LOWEST = 320, LOWEST_STACKED = 150, TALLEST = 560, FRAMED = 400, HEADING = 44, BARS = 10; /* pixels */
const FLATTEST = 2.5, LEAST_STACKED = 48; /* columns to rows; columns */
const LEAST_CELL = 2.5; /* pixels */

class FirstView {
  constructor(explorer) {
    this.explorer = explorer;
  }

  /* Choose the positions and heights of the pictures, and the sizes of their cells. */
  arrange() {
    const { explorer } = this, { map, boards, cells, data } = explorer, { array, memory } = boards;
    const last = map.dims.map((n) => String(n > map.zero ? n - map.one : n)).join(",");
    const main = document.querySelector("main"), narrow = matchMedia("(max-width: 600px)").matches;
    const [tileRows, tileColumns] = this.tileExtents();
    main.classList.toggle("stacked", !narrow && tileColumns > FLATTEST * tileRows && tileColumns >= LEAST_STACKED);
    if (!explorer.widthChosen) explorer.chooseWidth(data.width, false);
    array.show(cells.array, String(map.size > map.zero ? map.size - map.one : 0).length);
    memory.show(cells.memory, Math.max(2, Math.min(24, last.length)));
    if (map.empty) return this.setHeights(() => 200);
    const stacked = main.classList.contains("stacked"), room = this.room(main, narrow);
    const most = stacked ? Math.max(LOWEST_STACKED, (room - HEADING) / 2) : room;
    const low = this.fitArray(tileRows, tileColumns, most - NAME_HEIGHT - BARS);
    if (low && !explorer.widthChosen) explorer.chooseWidth(Math.max(tileColumns, Number(data.width)), false);
    const tileLines = low && Math.ceil((tileRows * tileColumns) / Number(cells.memory.width));
    this.fitMemory(tileLines, most - NAME_HEIGHT - BARS);
    for (const board of [array, memory]) board.clamp();
    const heights = [array, memory].map((board, k) => {
      const all = Number(board.cells.rows), rows = low && (stacked || narrow) ? Math.min(all, k ? tileLines : tileRows) : all;
      return Math.min(most, rows * board.height + board.top + BARS);
    });
    this.setHeights((k) => (narrow || stacked ? heights[k] : Math.max(...heights)));
  }

  /* The largest height of a picture, which reaches the end of the window; a frame gets as high as its page. */
  room(main, narrow) {
    if (window !== parent) return FRAMED;
    if (narrow) return Math.min(TALLEST, window.innerHeight * 0.38);
    const top = main.getBoundingClientRect().top + window.scrollY;
    return Math.max(LOWEST, Math.min(TALLEST, window.innerHeight - top - HEADING));
  }

  setHeights(heightOf) {
    Object.values(this.explorer.boards).forEach((board, k) => {
      board.canvas.style.height = `${Math.ceil(Math.max(90, heightOf(k)))}px`;
      board.resize();
    });
  }

  /* Rows and columns of the first outermost tile in the drawn dimensions, or of the array if there are no tiles.
     A swizzle repeats in rows of all banks. */
  tileExtents() {
    const { map, cells: { array }, data } = this.explorer;
    if (map.empty) return [1, 1];
    if (!map.depths && data.bank) {
      const columns = 2 ** (data.bank[0] + data.bank[1]), rows = Math.max(1, 2 ** (data.row[0] + data.row[1]) / columns);
      return [Math.min(rows, Number(array.rows)), Math.min(columns, Number(array.columns))];
    }
    const start = map.depths ? map.tile(array.index(map.zero, map.zero), 1).key : 0;
    const run = (count, index) => {
      const most = count < map.N(MOST_SCANNED) ? Number(count) : MOST_SCANNED;
      if (!map.depths) return most;
      let at = 1;
      while (at < most && map.tile(index(map.N(at)), 1).key === start) at++;
      return at;
    };
    return [run(array.rows, (at) => array.index(at, map.zero)), run(array.columns, (at) => array.index(map.zero, at))];
  }

  /* Whether the layout has a repeating part to show completely: a tile, or the banks of a swizzle. */
  get repeats() {
    return this.explorer.map.depths > 0 || Boolean(this.explorer.data.bank);
  }

  /* Show as much of the array as fits with text; if a tile does not fit, show a complete tile without text. */
  fitArray(tileRows, tileColumns, room) {
    const { array } = this.explorer.boards, rows = Number(array.cells.rows), columns = Number(array.cells.columns);
    array.stretch = 1;
    array.zoom = array.zoomFor(rows, columns, ZOOMS.length, array.width, room);
    if (array.labeled) return false;
    array.zoom = FIRST_LABELED;
    if (array.zoomFor(tileRows, tileColumns, FIRST_LABELED + 1, array.width, room) === FIRST_LABELED || !this.repeats) return false;
    const zoom = array.zoomFor(tileRows, tileColumns, FIRST_LABELED, array.width, room);
    if (zoom < 0 || ZOOMS[zoom] < LEAST_CELL) return false;
    array.zoom = zoom;
    array.stretch = Math.max(1, Math.min(MOST_STRETCHED, room / (tileRows * ZOOMS[zoom])));
    return true;
  }

  /* Show complete rows of memory: with text, or without text and as many as a tile fills, like the array. */
  fitMemory(tileRows, room) {
    const { explorer } = this, { memory, array } = explorer.boards, rows = Number(memory.cells.rows), columns = Number(memory.cells.columns);
    memory.stretch = 1;
    memory.zoom = memory.zoomFor(rows, columns, ZOOMS.length, memory.width, room);
    if (memory.labeled) return;
    if (tileRows) {
      memory.zoom = Math.max(ZOOMS.indexOf(LEAST_CELL), memory.zoomFor(tileRows, columns, FIRST_LABELED, memory.width, room));
      memory.stretch = Math.max(1, Math.min(MOST_STRETCHED, array.height / ZOOMS[memory.zoom]));
      return;
    }
    memory.zoom = FIRST_LABELED;
    const fit = Math.floor(memory.width / memory.cellWidth), width = Number(memory.cells.width);
    if (width <= fit || explorer.widthChosen) return;
    explorer.chooseWidth(this.shorterRow(width, fit), false);
    memory.show(memory.cells, memory.characters);
  }

  /* A row of memory of up to `fit` slots that ends where a run ends, and if possible where `row` ends. */
  shorterRow(row, fit) {
    const run = Math.max(1, ...this.explorer.data.runs.map(Number).filter((n) => n <= fit));
    const most = Math.max(1, Math.floor(fit / run)) * run;
    for (let part = most; 4 * part >= fit && part > 0; part -= run) if (row % part === 0) return part;
    return most;
  }

  /* Select an element whose digits are not all 0: two thirds down, three fifths to the right. */
  selected() {
    const { map, boards: { array }, rowDim, columnDim, fixed } = this.explorer, index = fixed.slice();
    const [tileRows, tileColumns] = this.tileExtents(), low = !array.labeled;
    const place = (dim, visible, tile, share) => {
      if (dim === null) return;
      const most = Math.max(1, low ? tile : Math.floor(visible));
      const count = map.dims[dim] < map.N(most) ? Number(map.dims[dim]) : most;
      index[dim] = map.N(Math.floor(count * share));
    };
    place(rowDim, array.tall / array.height, tileRows, 2 / 3);
    place(columnDim, array.width / array.cellWidth, tileColumns, 3 / 5);
    return index;
  }
}
