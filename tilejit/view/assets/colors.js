"use strict";

/* The colors of the style sheet: tiles, the gradient of memory order, and the hatching of padding. */

const SHADES = 64, STOPS = 4;

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const tiles = Array.from({ length: 8 }, (_, k) => read(`tile-${k}`));
  const shades = gradient(Array.from({ length: STOPS }, (_, k) => read(`order-${k}`)));
  const names = ["paper", "ink", "quiet", "grid", "edge", "mark", "hatching"];
  const plain = Object.fromEntries(names.map((name) => [name, read(name)]));
  return { ...plain, tiles, shades, hatch: hatching(plain.paper, plain.hatching) };
}

/* A gradient of SHADES colors through all stops. */
function gradient(stops) {
  const channels = stops.map((stop) => [1, 3, 5].map((k) => parseInt(stop.slice(k, k + 2), 16)));
  return Array.from({ length: SHADES }, (_, shade) => {
    const at = (shade * (stops.length - 1)) / (SHADES - 1), low = Math.min(Math.floor(at), stops.length - 2);
    const mixed = channels[low].map((from, k) => Math.round(from + (channels[low + 1][k] - from) * (at - low)));
    return `#${mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
  });
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
