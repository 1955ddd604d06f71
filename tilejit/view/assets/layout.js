"use strict";

/* Map elements to slots and back, from the digits of the layout alone. */

const MOST_LOOKED_UP = 1 << 20;

/* Doubles are exact up to 2^53, and XOR up to 2^31. Larger layouts use BigInt with the same rules. */
function arithmetic(wide) {
  if (wide) {
    return {
      of: BigInt,
      div: (a, b) => a / b,
      xor: (a, b) => a ^ b,
      shift: (a, by) => (by >= 0 ? a >> BigInt(by) : a << BigInt(-by)),
      mask: (bits, from) => ((1n << BigInt(bits)) - 1n) << BigInt(from),
      and: (a, b) => a & b,
    };
  }
  return {
    of: Number,
    div: (a, b) => Math.floor(a / b),
    xor: (a, b) => a ^ b,
    shift: (a, by) => (by >= 0 ? a >> by : a << -by),
    mask: (bits, from) => ((1 << bits) - 1) << from,
    and: (a, b) => a & b,
  };
}

/* The row-major number of digits, given their extents. */
function mixedRadix(digits, extents, zero) {
  let number = zero;
  for (let k = 0; k < digits.length; k++) number = number * extents[k] + digits[k];
  return number;
}

/* A tile's color: its coordinates times 1, 3, 5, ... so that no two neighbors are alike. */
function colorOf(digits) {
  let color = 0;
  for (let k = digits.length - 1, weight = 1; k >= 0; k--, weight += 2) {
    const digit = digits[k];
    color = (color + weight * (typeof digit === "bigint" ? Number(digit % 8n) : digit % 8)) % 8;
  }
  return color;
}

/* The base class of both kinds of layouts. */
class LayoutMap {
  constructor(data) {
    this.data = data;
    this.math = arithmetic(data.wide);
    this.N = this.math.of;
    this.zero = this.N(0);
    this.one = this.N(1);
    this.numbers = (list) => list.map(this.N);
    this.dims = this.numbers(data.dims);
    this.rank = this.dims.length;
    this.padded = this.numbers(data.padded);
    this.size = this.N(data.size);
    this.empty = this.dims.some((n) => n === this.zero);
  }

  inside(index) {
    return index.every((at, d) => at >= this.zero && at < this.dims[d]);
  }

  /* The slot of an element; an index may lie in the padding up to `padded`. */
  linearIndex(index) {
    return this.finish(this.sum(index.map(this.N)));
  }

  /* The index of the element in a slot, null if the slot is padding, undefined if it is unknown. */
  multiIndex(slot) {
    const found = this.place(this.N(slot));
    if (found === undefined) return undefined;
    return found.valid ? found.index : null;
  }

  /* A number that identifies a tile at a depth, and its color. */
  tile(index, depth) {
    if (!depth) return { key: 0, color: 0 };
    const { digits, extents } = this.prefix(index, depth);
    return this.painted(digits, extents);
  }

  /* The colors of all tiles at a depth. */
  tileColors(depth) {
    if (!depth || this.empty) return [0];
    const { extents } = this.prefix(this.dims.map(() => this.zero), depth);
    const ranges = extents.map((n) => Array.from({ length: n < this.N(8) ? Number(n) : 8 }, (_, digit) => digit));
    const seen = extents.map((_, at) => ranges[at].map((digit) => colorOf(extents.map((__, k) => (k === at ? digit : 0)))));
    const sums = seen.reduce((all, colors) => new Set([...all].flatMap((a) => colors.map((b) => (a + b) % 8))), new Set([0]));
    return [...sums].sort((a, b) => a - b);
  }

  /* The color of a slot by its position in memory, its bank, or its row. */
  colorOfSlot(slot, by) {
    const { period } = this.data, { N } = this;
    if (by === "order") return Number(this.math.div((slot % N(period)) * N(SHADES - 1), N(Math.max(1, period - 1))));
    return Number(this.bitsOf(slot, by) % N(8));
  }

  /* The bank or the row of a slot: some bits of its number. */
  bitsOf(slot, by) {
    const [first, count] = this.data[by], { N } = this;
    return this.math.div(slot, N(2 ** first)) % N(2 ** count);
  }

  painted(digits, extents) {
    const number = mixedRadix(digits, extents, this.zero);
    const key = this.data.wide ? Number(BigInt.asUintN(48, number)) : number;
    return { key, color: colorOf(digits) };
  }

  /* The words for the digit of a dimension that numbers tiles, and for the one inside a tile. */
  wordsOf(name) {
    if (name === "0") return {}; /* an axis that a tile adds */
    const noun = (this.rank === 2 && { i0: "row", i1: "column" }[name]) || name;
    return { tile: `${noun} of tiles`, inside: `${noun} in tile` };
  }

  /* The last digits times their strides; those of one value, which is 0, are omitted. */
  strideLine(values, strides, extents, names, depth) {
    const digits = values.map((value, a) => ({ name: names[a], value, extent: extents[a], stride: strides[a] }))
      .filter((d) => d.extent > this.one);
    const terms = digits.map((d) => `${d.value} \u00d7 ${d.stride}`);
    const total = digits.reduce((sum, d) => sum + d.value * d.stride, this.zero);
    return { title: "digits times strides", digits, text: `${terms.join(" + ") || "0"} = ${total}`, depth };
  }
}
