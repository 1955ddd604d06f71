"use strict";

/* The colors of the style sheet, and padding's hatching. */
function readColors() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const tiles = Array.from({ length: 8 }, (_, k) => read(`tile-${k}`));
  const plain = Object.fromEntries(["paper", "ink", "quiet", "grid", "edge", "mark"].map((n) => [n, read(n)]));
  return { ...plain, tiles, hatch: hatching(plain.paper, read("hatch")) };
}

function hatching(paper, line) {
  const canvas = document.createElement("canvas"), size = 8;
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  context.fillStyle = paper;
  context.fillRect(0, 0, size, size);
  context.strokeStyle = line;
  context.lineWidth = 1.5;
  context.beginPath();
  for (const from of [-size, 0, size]) {
    context.moveTo(from - 1, size + 1);
    context.lineTo(from + size + 1, -1);
  }
  context.stroke();
  return context.createPattern(canvas, "repeat");
}
