"use strict";

/* A context that records drawing calls as SVG, with the part of a canvas's interface that Drawing uses. */
class SvgContext {
  constructor(colors) {
    this.colors = colors;
    this.parts = [];
    this.globalAlpha = 1;
    this.dashes = "";
  }

  escaped(text) {
    return String(text).replace(/[&<>"]|[^ -~]/g, (character) => `&#${character.codePointAt(0)};`);
  }

  number(value) {
    return String(Math.round(value * 100) / 100);
  }

  /* The only pattern is the hatching of padding. */
  fill() {
    const alpha = this.globalAlpha < 1 ? ` fill-opacity="${this.globalAlpha}"` : "";
    return `fill="${typeof this.fillStyle === "string" ? this.fillStyle : "url(#hatch)"}"${alpha}`;
  }

  box(x, y, width, height) {
    return `x="${this.number(x)}" y="${this.number(y)}" width="${this.number(width)}" height="${this.number(height)}"`;
  }

  save() {}

  beginPath() {}

  rect(...box) {
    this.clipped = box;
  }

  /* An inner <svg> clips to its box, and its corner is the origin, so `translate` does nothing. */
  clip() {
    this.parts.push(`<svg ${this.box(...this.clipped)}>`);
  }

  translate() {}

  restore() {
    this.parts.push("<\/svg>");
  }

  setLineDash(lengths) {
    this.dashes = lengths.length ? ` stroke-dasharray="${lengths.join(" ")}"` : "";
  }

  fillRect(...box) {
    this.parts.push(`<rect ${this.box(...box)} ${this.fill()}/>`);
  }

  strokeRect(...box) {
    const line = `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"`;
    this.parts.push(`<rect ${this.box(...box)} fill="none" ${line}${this.dashes}/>`);
  }

  fillText(text, x, y) {
    const [, size, family] = /^(\d+)px (.*)$/.exec(this.font);
    const anchor = { center: "middle", right: "end", left: "start" }[this.textAlign];
    const look = `font-size="${size}" font-family="${this.escaped(family)}" text-anchor="${anchor}" ${this.fill()}`;
    this.parts.push(`<text x="${this.number(x)}" y="${this.number(y + 0.35 * size)}" ${look}>${this.escaped(text)}<\/text>`);
  }
}

/* Both pictures as they are on the page, with the layout as their title. */
function pictureSvg(explorer) {
  const { array, memory } = explorer.boards, { colors } = array;
  const place = document.querySelector("main").getBoundingClientRect(), title = explorer.data.title;
  const context = new SvgContext(colors), top = 34, parts = [];
  let width = 0, height = 0;
  for (const board of [array, memory]) {
    const box = board.canvas.getBoundingClientRect();
    const x = Math.round(box.left - place.left) + 8, y = Math.round(box.top - place.top) + top;
    context.parts = [];
    new Drawing(board, context).draw();
    parts.push(`<svg x="${x}" y="${y}" width="${board.left + board.width}" height="${board.top + board.tall}">`,
      ...context.parts, "<\/svg>");
    width = Math.max(width, x + board.left + board.width);
    height = Math.max(height, y + board.top + board.tall);
  }
  const size = `width="${width + 8}" height="${height + 8}"`, text = context.escaped(title);
  const hatch = `<pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="${colors.paper}"/>` +
    `<path d="M-1 1L1 -1M-1 9L9 -1M7 9L9 7" stroke="${colors.hatching}" stroke-width="1.5"/><\/pattern>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${width + 8} ${height + 8}" role="img">`,
    `<title>${text}<\/title><defs>${hatch}<\/defs><rect ${size} fill="${colors.paper}"/>`,
    `<text x="8" y="24" font-size="14" font-weight="bold" font-family="${context.escaped(MONOSPACE)}" fill="${colors.ink}">${text}<\/text>`,
    ...parts,
    "<\/svg>\n",
  ].join("\n");
}
