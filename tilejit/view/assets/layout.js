"use strict";

/* Where an element lives and what lives in a slot, worked out from the digits of the layout alone. */

const MOST_LOOKED_UP = 1 << 20;

/* Doubles are exact to 2^53, XOR of them to 2^31; beyond that the same rules run over BigInt. */
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

/* A tile's colour: its coordinates times 1, 3, 5, ... so that no two neighbours are alike. */
function colourOf(digits) {
  let colour = 0;
  for (let k = digits.length - 1, weight = 1; k >= 0; k--, weight += 2) {
    const digit = digits[k];
    colour = (colour + weight * (typeof digit === "bigint" ? Number(digit % 8n) : digit % 8)) % 8;
  }
  return colour;
}

/* What both kinds of layout have. */
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

  /* The index of the element in a slot, null where the slot is padding, undefined where nobody knows. */
  multiIndex(slot) {
    const found = this.place(this.N(slot));
    if (found === undefined) return undefined;
    return found.valid ? found.index : null;
  }

  /* What tells a tile from all others, at a depth: a number and a colour. */
  tile(index, depth) {
    if (!depth) return { key: 0, colour: 0 };
    const { digits, extents } = this.prefix(index, depth);
    return this.painted(digits, extents);
  }

  painted(digits, extents) {
    const number = mixedRadix(digits, extents, this.zero);
    const key = this.data.wide ? Number(BigInt.asUintN(48, number)) : number;
    return { key, colour: colourOf(digits) };
  }
}

/* XLA's shapes: one tile step turns the index e of an axis into (e / t, e mod t). */
class XlaMap extends LayoutMap {
  constructor(data) {
    super(data);
    this.order = data.order;
    this.steps = data.steps.map((s) => ({ ...s, tile: this.numbers(s.tile) }));
    this.extents = data.extents.map(this.numbers);
    this.depths = this.steps.length;
    const last = this.extents[this.extents.length - 1];
    this.strides = last.map(() => this.one);
    for (let k = last.length - 2; k >= 0; k--) this.strides[k] = this.strides[k + 1] * last[k + 1];
    this.separable = this.steps.every((s) => s.groups.every((g) => g.length === 1));
    this.axesBefore = this.steps.map((s, k) => Array(s.lead).fill(this.one).concat(this.extents[k]));
  }

  /* The axes' values at every level: in physical order, then after each step. */
  levels(index) {
    let values = this.order.map((d) => index[d]);
    const out = [values];
    this.steps.forEach((step, k) => {
      const axes = this.axesBefore[k];
      const all = Array(step.lead).fill(this.zero).concat(values);
      const high = [], low = [];
      step.groups.forEach((group, g) => {
        let merged = this.zero;
        for (const a of group) merged = merged * axes[a] + all[a];
        high.push(this.math.div(merged, step.tile[g]));
        low.push(merged % step.tile[g]);
      });
      values = all.slice(0, step.untouched).concat(high, low);
      out.push(values);
    });
    return out;
  }

  sum(index) {
    const levels = this.levels(index);
    return mixedRadix(levels[levels.length - 1], this.extents[this.extents.length - 1], this.zero);
  }

  finish(value) {
    return value;
  }

  prefix(index, depth) {
    return this.cut(this.levels(index)[depth], depth);
  }

  cut(values, depth) {
    const count = values.length - this.steps[depth - 1].tile.length;
    return { digits: values.slice(0, count), extents: this.extents[depth].slice(0, count) };
  }

  /* Steps undone from the last to the first; `levels` as of the index, were the padding elements. */
  place(slot) {
    const { math, zero, dims, order } = this;
    const last = this.extents[this.extents.length - 1];
    let values = new Array(last.length), rest = slot;
    for (let k = last.length - 1; k >= 0; k--) {
      values[k] = last[k] ? rest % last[k] : rest;
      rest = last[k] ? math.div(rest, last[k]) : rest;
    }
    const inBuffer = rest === zero, levels = new Array(this.steps.length + 1);
    let valid = inBuffer;
    levels[this.steps.length] = values;
    for (let k = this.steps.length - 1; k >= 0; k--) {
      const undone = this.undo(k, values);
      valid = valid && undone.valid;
      levels[k] = values = undone.values;
    }
    const index = new Array(this.rank);
    for (let a = 0; a < order.length; a++) {
      index[order[a]] = values[a];
      valid = valid && values[a] < dims[order[a]];
    }
    return { index, valid, levels, inBuffer };
  }

  /* The axes before a step, given those after it. */
  undo(k, values) {
    const { math, zero } = this, step = this.steps[k], axes = this.axesBefore[k], count = step.tile.length;
    const outer = values.slice(0, step.untouched), start = values.length - 2 * count;
    let valid = true;
    for (let g = 0; g < count; g++) {
      const group = step.groups[g];
      let merged = values[start + g] * step.tile[g] + values[start + count + g];
      if (group.length === 1 && merged < axes[group[0]]) {
        outer[group[0]] = merged;
        continue;
      }
      for (let i = group.length - 1; i >= 0; i--) {
        const extent = axes[group[i]];
        outer[group[i]] = extent ? merged % extent : merged;
        merged = extent ? math.div(merged, extent) : merged;
      }
      valid = valid && merged === zero;
    }
    for (let a = 0; a < step.lead; a++) valid = valid && outer[a] === zero;
    return { values: step.lead ? outer.slice(step.lead) : outer, valid };
  }

  /* The tile of a slot, padding too; behind the last tile there is none. */
  tileOfSlot(found, depth) {
    if (!depth || !found.inBuffer) return { key: found.inBuffer ? 0 : -1, colour: 0 };
    const { digits, extents } = this.cut(found.levels[depth], depth);
    return this.painted(digits, extents);
  }

  /* How the index divides: lines of digits, the outermost tile first. */
  trace(index) {
    const levels = this.levels(index), names = index.map((_, d) => `i${d}`);
    const lines = [{
      title: "index",
      digits: index.map((value, d) => ({ name: names[d], value, extent: this.dims[d] })),
      depth: 0,
    }];
    let labels = this.order.map((d) => names[d]);
    if (this.order.some((d, a) => d !== a)) {
      lines.push({ title: "in the order of memory, most major first", digits: this.axes(levels[0], 0, labels), depth: 0 });
    }
    this.steps.forEach((step, k) => {
      const all = Array(step.lead).fill("0").concat(labels);
      const values = Array(step.lead).fill(this.zero).concat(levels[k]), axes = this.axesBefore[k];
      const merged = step.groups.map((g) => (g.length > 1 ? `(${g.map((a) => all[a]).join(",")})` : all[g[0]]));
      const sums = step.groups.map((group, g) => {
        const whole = mixedRadix(group.map((a) => values[a]), group.map((a) => axes[a]), this.zero), tile = step.tile[g];
        return `${merged[g]} = ${whole} = ${this.math.div(whole, tile)} \u00d7 ${tile} + ${whole % tile}`;
      });
      labels = all.slice(0, step.untouched).concat(
        merged.map((name, g) => `${name}/${step.tile[g]}`), merged.map((name, g) => `${name}%${step.tile[g]}`));
      lines.push({
        title: `tile (${this.data.steps[k].text.join(",")})`,
        digits: this.axes(levels[k + 1], k + 1, labels, labels.length - step.tile.length),
        text: sums.join(", "),
        depth: k + 1,
      });
    });
    const last = levels[levels.length - 1];
    lines.push(this.strideLine(last, this.strides, this.extents[levels.length - 1], labels, this.depths));
    return lines;
  }

  axes(values, level, labels, inner = values.length) {
    return values.map((value, a) => ({ name: labels[a], value, extent: this.extents[level][a], inner: a >= inner }));
  }
}

/* CuTe's layouts: a sum of digits, then offsets, swizzles and layouts applied to it. */
class CuteMap extends LayoutMap {
  constructor(data) {
    super(data);
    this.modes = data.modes.map((mode) => mode.map(([n, s]) => [this.N(n), this.N(s)]));
    this.steps = data.steps.map((s) => ({
      ...s,
      offset: this.N(s.offset),
      layout: s.layout && s.layout.map(([n, d]) => [this.N(n), this.N(d)]),
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
    this.invertible = this.steps.every((s) => s.swizzle) && this.steps.length < 2 && this.nested();
  }

  absolute(n) {
    return n < this.zero ? -n : n;
  }

  /* Whether each stride passes what all smaller ones reach together: then no offset is met twice. */
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

  finish(value) {
    for (const step of this.steps) value = this.applied(step, value);
    return value;
  }

  /* Sizes of what is below a depth, for every mode: depth 1 leaves all digits but the slowest. */
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
    for (const step of this.steps) rest = this.swizzled(step.swizzle, rest) - step.offset;
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

  /* The first element in C order of every slot, or null where there are too many to look at. */
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
    return found.valid ? this.tile(found.index, depth) : { key: -1, colour: 0 };
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
      const own = mode.map(([size, stride]) => {
        const name = mode.length === 1 ? `i${d}` : `i${d}/${weight}%${size}`;
        const digit = { name, value: at % size, extent: size, stride };
        at = this.math.div(at, size);
        weight *= size;
        return digit;
      });
      return own.reverse();
    });
  }

  /* A level: what each mode counts in whole tiles, what is left inside. */
  divided(index, depth) {
    const weights = this.weights(depth), { digits, extents } = this.prefix(index, depth);
    const parts = index.map((at, d) => ({ at, weight: weights[d], high: digits[d], low: at % weights[d] }));
    return {
      title: `tile (${weights.join(",")})`,
      digits: parts.map((p, d) => ({ name: `i${d}/${p.weight}`, value: p.high, extent: extents[d], inner: false }))
        .concat(parts.map((p, d) => ({ name: `i${d}%${p.weight}`, value: p.low, extent: p.weight, inner: true }))),
      text: parts.map((p, d) => `i${d} = ${p.at} = ${p.high} \u00d7 ${p.weight} + ${p.low}`).join(", "),
      depth,
    };
  }

  stepLine(step, value) {
    const at = value + step.offset, result = this.applied(step, value);
    const plus = step.offset === this.zero ? `${value}` : `${value} + ${step.offset} = ${at}`;
    if (!step.swizzle) return { title: `layout ${step.text}`, digits: [], text: `${plus} \u2192 ${result}`, depth: this.depths };
    const [bits, base, shift] = step.swizzle;
    const width = Math.max(bits + base + Math.abs(shift), at.toString(2).length);
    const binary = (n) => n.toString(2).padStart(width, "0");
    const changed = this.math.xor(at, result);
    return {
      title: `swizzle ${step.text}`,
      digits: [],
      text: `${plus}; ${binary(at)} xor ${binary(changed)} = ${binary(result)}; ${result}`,
      depth: this.depths,
    };
  }
}

/* The last digits times their strides. */
LayoutMap.prototype.strideLine = function (values, strides, extents, names, depth) {
  const digits = values.map((value, a) => ({ name: names[a], value, extent: extents[a], stride: strides[a] }));
  const terms = digits.filter((d) => d.extent > this.one).map((d) => `${d.value} \u00d7 ${d.stride}`);
  const total = digits.reduce((sum, d) => sum + d.value * d.stride, this.zero);
  return { title: "digits times strides", digits, text: `${terms.join(" + ") || "0"} = ${total}`, depth };
};

function layoutMap(data) {
  return data.kind === "xla" ? new XlaMap(data) : new CuteMap(data);
}
