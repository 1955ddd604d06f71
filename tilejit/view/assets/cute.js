"use strict";

/* CuTe's layouts: a sum of digits, then offsets, swizzles and layouts applied to it. */
class CuteMap extends LayoutMap {
  constructor(data) {
    super(data);
    this.modes = data.modes.map((mode) => mode.map(([n, s]) => [this.N(n), this.N(s)]));
    this.steps = data.steps.map((s) => ({
      ...s,
      offset: this.N(s.offset),
      layout: s.layout && s.layout.map(([n, d]) => [this.N(n), this.N(d)]),
      digit: s.digit && s.digit.map((x) => (Array.isArray(x) ? x.map((n) => this.N(n)) : typeof x === "string" ? x : this.N(x))),
    }));
    this.depths = Math.max(1, ...this.modes.map((m) => m.length)) - 1;
    this.separable = true;
    this.used = this.modes.flatMap((mode, dim) => {
      let weight = this.one;
      return mode.map(([size, stride]) => {
        const have = this.math.div(this.dims[dim] + weight - this.one, weight);
        const digit = { size: size < have ? size : have, stride, dim, weight };
        weight *= size;
        return digit;
      }).filter((digit) => digit.size > this.one);
    });
    const permutes = (s, k) => (s.swizzle || s.digit) && (k === 0 || s.offset === this.zero);
    this.invertible = this.steps.every(permutes) && this.nested();
  }

  absolute(n) {
    return n < this.zero ? -n : n;
  }

  /* Whether each stride exceeds the combined reach of all smaller ones, so that no offset occurs twice. */
  nested() {
    let reach = this.zero;
    this.used.sort((a, b) => (this.absolute(a.stride) < this.absolute(b.stride) ? -1 : 1));
    for (const { size, stride } of this.used) {
      if (this.absolute(stride) <= reach) return false;
      reach += this.absolute(stride) * (size - this.one);
    }
    return true;
  }

  sum(index) {
    let value = this.zero;
    this.modes.forEach((mode, d) => {
      let at = index[d];
      for (const [size, stride] of mode) {
        value += (at % size) * stride;
        at = this.math.div(at, size);
      }
    });
    return value;
  }

  applied(step, value) {
    const at = value + step.offset;
    if (step.swizzle) return this.swizzled(step.swizzle, at);
    if (step.digit) return this.moved(step.digit, at);
    let rest = at, out = this.zero;
    step.layout.forEach(([size, stride], k) => {
      out += (k < step.layout.length - 1 ? rest % size : rest) * stride;
      rest = this.math.div(rest, size);
    });
    return out;
  }

  swizzled([bits, base, shift], value) {
    const moved = this.math.and(value, this.math.mask(bits, base + Math.max(0, shift)));
    return this.math.xor(value, this.math.shift(moved, shift));
  }

  /* One digit, moved by a table or by another digit. */
  moved([size, stride, operation, bySize, byStride, table], value) {
    const digit = this.math.div(value, stride) % size, by = this.math.div(value, byStride) % bySize;
    let to = table.length ? table[Number(digit)] : this.math.xor(digit, by);
    if (operation === "+") to = (digit + by) % size;
    if (operation === "-") to = (digit + size - (by % size)) % size;
    return value + (to - digit) * stride;
  }

  movedBack([size, stride, operation, bySize, byStride, table], value) {
    const back = table.map((_, k) => this.N(table.indexOf(this.N(k))));
    const opposite = { "+": "-", "-": "+" }[operation] || operation;
    return this.moved([size, stride, opposite, bySize, byStride, back], value);
  }

  finish(value) {
    for (const step of this.steps) value = this.applied(step, value);
    return value;
  }

  /* The product of the digits of each mode within a tile; depth 1 keeps all digits but the slowest. */
  weights(depth) {
    return this.modes.map((mode) => {
      const kept = Math.min(mode.length, this.depths + 1 - depth);
      return mode.slice(0, kept).reduce((n, [size]) => n * size, this.one);
    });
  }

  prefix(index, depth) {
    const weights = this.weights(depth);
    return {
      digits: index.map((at, d) => this.math.div(at, weights[d])),
      extents: this.padded.map((n, d) => this.math.div(n, weights[d])),
    };
  }

  place(slot) {
    if (this.empty) return { index: this.dims.map(() => this.zero), valid: false };
    return this.invertible ? this.byDigits(slot) : this.byTable(slot);
  }

  byDigits(slot) {
    const { zero, one, math } = this;
    let rest = slot;
    for (const step of [...this.steps].reverse()) {
      rest = step.swizzle ? this.swizzled(step.swizzle, rest) : this.movedBack(step.digit, rest);
      rest -= step.offset;
    }
    for (const { size, stride } of this.used) if (stride < zero) rest -= (size - one) * stride;
    const index = this.dims.map(() => zero);
    let valid = rest >= zero;
    for (let k = this.used.length - 1; valid && k >= 0; k--) {
      const { size, stride, dim, weight } = this.used[k], step = this.absolute(stride);
      let at = math.div(rest, step);
      if (at >= size) at = size - one;
      rest -= at * step;
      index[dim] += (stride > zero ? at : size - one - at) * weight;
    }
    return { index, valid: valid && rest === zero && this.inside(index) };
  }

  byTable(slot) {
    if (this.table === undefined) this.table = this.lookedUp();
    if (this.table === null) return undefined;
    const index = this.table.get(String(slot));
    return index ? { index, valid: true } : { index: this.dims.map(() => this.zero), valid: false };
  }

  /* The first element in C order of every slot, or null if there are too many elements. */
  lookedUp() {
    let count = 1;
    for (const n of this.dims) count *= Number(n);
    if (count > MOST_LOOKED_UP) return null;
    const table = new Map(), index = this.dims.map(() => this.zero);
    for (let row = 0; row < count; row++) {
      const slot = String(this.finish(this.sum(index)));
      if (!table.has(slot)) table.set(slot, index.slice());
      for (let d = this.rank - 1; d >= 0; d--) {
        index[d] += this.one;
        if (index[d] < this.dims[d]) break;
        index[d] = this.zero;
      }
    }
    return table;
  }

  tileOfSlot(found, depth) {
    return found.valid ? this.tile(found.index, depth) : { key: -1, color: 0 };
  }

  trace(index) {
    const lines = [{
      title: "index",
      digits: index.map((value, d) => ({ name: `i${d}`, value, extent: this.dims[d] })),
      depth: 0,
    }];
    for (let depth = 1; depth <= this.depths; depth++) lines.push(this.divided(index, depth));
    const all = this.taken(index);
    const line = this.strideLine(all.map((d) => d.value), all.map((d) => d.stride), all.map((d) => d.extent),
      all.map((d) => d.name), this.depths);
    lines.push(line);
    let value = this.sum(index);
    for (const step of this.steps) {
      lines.push(this.stepLine(step, value));
      value = this.applied(step, value);
    }
    return lines;
  }

  /* All digits of an index, those of a mode from the slowest to the fastest. */
  taken(index) {
    return this.modes.flatMap((mode, d) => {
      let at = index[d], weight = this.one;
      const own = mode.map(([size, stride], k) => {
        const name = `i${d}${weight > this.one ? `/${weight}` : ""}${k < mode.length - 1 ? `%${size}` : ""}`;
        const digit = { name, value: at % size, extent: size, stride };
        at = this.math.div(at, size);
        weight *= size;
        return digit;
      });
      return own.reverse();
    });
  }

  levelName(depth) {
    return `tile (${this.weights(depth).join(",")})`;
  }

  /* A level: the number of complete tiles in each mode, and the rest inside a tile. */
  divided(index, depth) {
    const { one } = this, weights = this.weights(depth), { digits, extents } = this.prefix(index, depth);
    const parts = index.map((at, d) => ({
      name: `i${d}`, weight: weights[d], high: digits[d], low: at % weights[d], extent: extents[d], words: this.wordsOf(`i${d}`),
    }));
    const outer = parts.map((p) => ({
      name: p.weight > one ? `${p.name}/${p.weight}` : p.name, value: p.high, extent: p.extent, inner: false, words: p.words.tile,
    }));
    const inner = parts.map((p) => ({
      name: `${p.name}%${p.weight}`, value: p.low, extent: p.weight, inner: true, words: p.words.inside,
    }));
    return {
      title: this.levelName(depth),
      digits: outer.concat(inner).filter(({ extent }) => extent > one),
      depth,
    };
  }

  stepLine(step, value) {
    const at = value + step.offset, result = this.applied(step, value);
    const plus = step.offset === this.zero ? `${value}` : `${value} + ${step.offset} = ${at}`;
    if (!step.swizzle) return { title: `${step.digit ? "digit" : "layout"} ${step.text}`, digits: [], text: `${plus} \u2192 ${result}`, depth: this.depths };
    return { title: `swizzle ${step.text}`, digits: [], text: this.swizzleText(step, plus, at, result), depth: this.depths };
  }

  /* "44 is 101100 in binary: row 101, bank 100. The bank becomes 100 xor 101 = 001, which gives 101001 = 41" */
  swizzleText(step, plus, at, result) {
    if (at === result && !step.swizzle[0]) return plus;
    const [bits, base, shift] = step.swizzle, bank = base + Math.max(0, -shift), row = base + Math.max(0, shift);
    const width = Math.max(bits + base + Math.abs(shift), at.toString(2).length);
    const binary = (n, digits = width) => n.toString(2).padStart(digits, "0");
    const part = (n, first) => binary(this.math.shift(this.math.and(n, this.math.mask(bits, first)), first), bits);
    return `${plus} is ${binary(at)} in binary: row ${part(at, row)}, bank ${part(at, bank)}. The bank becomes ` +
      `${part(at, bank)} xor ${part(at, row)} = ${part(result, bank)}, which gives ${binary(result)} = ${result}`;
  }
}

function layoutMap(data) {
  return data.kind === "xla" ? new XlaMap(data) : new CuteMap(data);
}
