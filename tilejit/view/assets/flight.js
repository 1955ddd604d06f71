"use strict";

/* An animation: elements fly from the array to memory, in the order of their slots. */

const MOST_FLYING = 4096;
const FLIGHT = 500, SHORTEST = 2000, LONGEST = 8000, EACH = 90; /* milliseconds */
const STILL_STEPS = 12, STILL_STEP = 350;

class Flight {
  constructor(explorer, canvas, button) {
    this.explorer = explorer;
    this.canvas = canvas;
    this.button = button;
    this.frame = null;
    this.timer = null;
    button.addEventListener("click", () => (this.running ? this.stop() : this.start()));
    addEventListener("keydown", (event) => event.key === "Escape" && this.running && this.stop());
  }

  get running() {
    return this.frame !== null || this.timer !== null;
  }

  start() {
    const flying = this.visible();
    if (!flying.length) return this.explorer.say("No element is visible both in the array and in memory.");
    this.flying = flying;
    this.name("Stop", "Stop");
    this.explorer.say("Elements move to memory in the order of their slots.");
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.still(0);
    this.total = Math.max(SHORTEST, Math.min(LONGEST, flying.length * EACH));
    this.begun = performance.now();
    this.prepare();
    this.frame = requestAnimationFrame((now) => this.step(now));
  }

  stop() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.frame = this.timer = null;
    this.canvas.hidden = true;
    this.name("Play", "Play: elements move from the array to memory");
    this.unveil(null);
    this.explorer.say("");
  }

  name(text, label) {
    this.button.textContent = text;
    this.button.setAttribute("aria-label", label);
  }

  unveil(at) {
    const { memory } = this.explorer.boards;
    memory.veil = at;
    memory.draw();
  }

  /* Elements that both pictures show, by slot, with their boxes and colors. */
  visible() {
    const { boards, cells } = this.explorer, { array, memory } = boards, out = [];
    const grid = new Drawing(array, array.context).grid(), { N } = array;
    if (grid.step > 1 || grid.rows * grid.columns > 4 * MOST_FLYING) return out;
    const palette = cells.array.shaded ? array.colors.shades : array.colors.tiles;
    for (let r = 0; r < grid.rows; r++) {
      for (let c = 0; c < grid.columns; c++) {
        const k = r * grid.columns + c, at = { row: grid.first.row + N(r), column: grid.first.column + N(c) };
        if (grid.states[k] !== ELEMENT) continue;
        const selection = cells.array.select(at), to = cells.memory.where(selection), box = memory.box(to);
        if (box) out.push({ slot: selection.slot, to, from: at, color: palette[grid.colors[k]], text: cells.array.label(at.row, at.column, ELEMENT) });
      }
    }
    out.sort((a, b) => (a.slot < b.slot ? -1 : a.slot > b.slot ? 1 : 0));
    return out.slice(0, MOST_FLYING);
  }

  /* Without motion, memory fills in a few steps. */
  still(step) {
    if (step > STILL_STEPS) return this.stop();
    this.unveil(this.veilBefore(Math.floor((step / STILL_STEPS) * this.flying.length)));
    this.timer = setTimeout(() => this.still(step + 1), STILL_STEP);
  }

  /* The first cell of memory to hide: that of the first element that has not arrived. */
  veilBefore(count) {
    return count < this.flying.length ? this.flying[count].to : null;
  }

  /* The canvas in front of both pictures. */
  prepare() {
    const place = this.canvas.parentElement.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.canvas.hidden = false;
    this.canvas.width = Math.round(place.width * ratio);
    this.canvas.height = Math.round(place.height * ratio);
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.place = place;
  }

  boxOf(board, at) {
    const box = board.box(at), corner = board.canvas.getBoundingClientRect();
    if (!box) return null;
    return { ...box, x: box.x + corner.left - this.place.left, y: box.y + corner.top - this.place.top };
  }

  step(now) {
    const { flying, total, context } = this, spacing = total / flying.length, past = now - this.begun;
    const arrived = Math.floor((past - FLIGHT) / spacing), departed = Math.ceil(past / spacing);
    if (arrived >= flying.length) return this.stop();
    this.place = this.canvas.parentElement.getBoundingClientRect();
    this.unveil(this.veilBefore(Math.max(0, arrived)));
    context.clearRect(0, 0, this.place.width, this.place.height);
    for (let k = Math.max(0, arrived); k < Math.min(flying.length, departed); k++) {
      this.drawAt(flying[k], Math.max(0, Math.min(1, (past - k * spacing) / FLIGHT)));
    }
    this.frame = requestAnimationFrame((later) => this.step(later));
  }

  drawAt({ from, to, color, text }, share) {
    const { array, memory } = this.explorer.boards, { context } = this;
    const start = this.boxOf(array, from), end = this.boxOf(memory, to);
    if (!start || !end) return;
    const eased = share * share * (3 - 2 * share), mixed = (name) => start[name] + (end[name] - start[name]) * eased;
    const [x, y, width, height] = ["x", "y", "width", "height"].map(mixed);
    context.fillStyle = color;
    context.fillRect(x, y, width, height);
    context.strokeStyle = array.colors.mark;
    context.lineWidth = 1.5;
    context.strokeRect(x, y, width, height);
    if (!array.labeled) return;
    context.fillStyle = array.colors.ink;
    context.font = array.font;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, x + width / 2, y + height / 2 + 0.5);
  }
}
