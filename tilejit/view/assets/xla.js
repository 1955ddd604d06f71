"use strict";

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

  /* The values of the axes at every level: in physical order, then after each step. */
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

  /* Undo the steps from the last to the first; `levels` treats padding as elements. */
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

  /* The tile of a slot, including padding; slots after the last tile have none. */
  tileOfSlot(found, depth) {
    if (!depth || !found.inBuffer) return { key: found.inBuffer ? 0 : -1, color: 0 };
    const { digits, extents } = this.cut(found.levels[depth], depth);
    return this.painted(digits, extents);
  }

  levelName(depth) {
    return `tile (${this.data.steps[depth - 1].text.join(",")})`;
  }

  /* How the index is divided: lines of digits, the outermost tile first. */
  trace(index) {
    const levels = this.levels(index), names = index.map((_, d) => `i${d}`);
    const lines = [{
      title: "index",
      digits: index.map((value, d) => ({ name: names[d], value, extent: this.dims[d] })),
      depth: 0,
    }];
    let labels = this.order.map((d) => names[d]), origins = labels;
    if (this.order.some((d, a) => d !== a)) {
      const digits = labels.map((name, a) => ({ name, value: levels[0][a], extent: this.extents[0][a] }));
      lines.push({ title: "in memory order, most major first", digits, depth: 0 });
    }
    this.steps.forEach((step, k) => {
      const all = Array(step.lead).fill("0").concat(labels), from = Array(step.lead).fill("0").concat(origins);
      const values = Array(step.lead).fill(this.zero).concat(levels[k]), axes = this.axesBefore[k];
      const named = (of) => step.groups.map((g) => (g.length > 1 ? `(${g.map((a) => of[a]).join(",")})` : of[g[0]]));
      const merged = named(all), dims = named(from), cuts = step.tile.map((n) => n > this.one);
      const whole = (group) => mixedRadix(group.map((a) => values[a]), group.map((a) => axes[a]), this.zero);
      const sums = step.groups.map((group, g) => (group.length > 1 ? `${merged[g]} = ${whole(group)}` : ""));
      labels = all.slice(0, step.untouched).concat(
        merged.map((name, g) => (cuts[g] ? `${name}/${step.tile[g]}` : name)), merged.map((name, g) => `${name}%${step.tile[g]}`));
      origins = from.slice(0, step.untouched).concat(dims, dims);
      lines.push({
        title: this.levelName(k + 1),
        digits: this.made(step, levels[k + 1], this.extents[k + 1], labels, origins),
        text: sums.filter(Boolean).join(", "),
        depth: k + 1,
      });
    });
    const last = levels[levels.length - 1];
    lines.push(this.strideLine(last, this.strides, this.extents[levels.length - 1], labels, this.depths));
    return lines;
  }

  /* The digits that a step makes, without those of one value. */
  made(step, values, extents, labels, origins) {
    const inside = values.length - step.tile.length;
    return values.map((value, a) => {
      const inner = a >= inside, words = this.wordsOf(origins[a]);
      return { name: labels[a], value, extent: extents[a], inner, words: inner ? words.inside : words.tile };
    }).filter(({ extent }, a) => a >= step.untouched && extent > this.one);
  }
}
