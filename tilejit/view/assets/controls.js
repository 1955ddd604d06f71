"use strict";

/* The fields and buttons around the pictures. */
class Controls {
  constructor(explorer) {
    this.explorer = explorer;
    const byId = (id) => document.getElementById(id);
    this.fields = { element: byId("element"), slot: byId("slot"), width: byId("width") };
    byId("fewer").addEventListener("click", () => explorer.changeLevel(-1));
    byId("more").addEventListener("click", () => explorer.changeLevel(1));
    byId("theme").addEventListener("click", () => this.nextTheme());
    byId("copy-link").addEventListener("click", () => this.copyLink());
    byId("copy-svg").addEventListener("click", () => this.copy(pictureSvg(explorer), "Copied the picture as SVG."));
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => explorer.boards[button.dataset.board].magnify(Number(button.dataset.zoom)));
    }
    this.fields.element.addEventListener("change", () => this.goToElement());
    this.fields.slot.addEventListener("change", () => this.goToSlot());
    this.fields.width.addEventListener("change", () => this.changeWidth());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor());
    addEventListener("message", (event) => event.source === parent && this.followPage(event.data));
    this.makeColors();
    this.makeDimensions();
    this.flight = new Flight(explorer, byId("flight"), byId("play"));
  }

  makeColors() {
    const { explorer } = this, select = document.getElementById("color");
    select.replaceChildren(...explorer.colorings.map(({ name, text }) => make("option", { value: name, text })));
    select.addEventListener("change", () => {
      explorer.color = explorer.colorings.find(({ name }) => name === select.value);
      explorer.refresh();
    });
  }

  copyLink() {
    this.explorer.state.write();
    this.copy(location.href, "Copied a link to what you see.");
  }

  /* Pages without access to the clipboard, such as local files in frames, copy from a selected field. */
  copy(text, done) {
    const fallback = () => {
      const field = make("textarea", { readonly: "" }), focused = document.activeElement;
      field.value = text;
      document.body.append(field);
      field.select();
      const copied = document.execCommand("copy");
      field.remove();
      focused.focus();
      this.explorer.say(copied ? done : "The browser does not allow copying here.");
    };
    if (!navigator.clipboard) return fallback();
    navigator.clipboard.writeText(text).then(() => this.explorer.say(done), fallback);
  }

  refuse(field, wrong, why) {
    field.setAttribute("aria-invalid", String(wrong));
    field.setCustomValidity(wrong ? why : "");
    if (wrong) document.getElementById("selected").textContent = why;
    return wrong;
  }

  goToElement() {
    const { map } = this.explorer, field = this.fields.element, index = integers(map, field.value);
    const wrong = !index || index.length !== map.rank || !map.inside(index) || map.empty;
    const dims = `[${map.dims.join(", ")}]`;
    if (!this.refuse(field, wrong, `Enter ${map.rank} indices, separated by commas, inside ${dims}.`)) {
      this.explorer.select(this.explorer.ofIndex(index));
    }
  }

  goToSlot() {
    const { map } = this.explorer, field = this.fields.slot, found = integers(map, field.value);
    const wrong = !found || found.length !== 1 || found[0] >= map.size;
    if (!this.refuse(field, wrong, `Enter a slot from 0 to ${map.size - map.one}.`)) {
      this.explorer.select(this.explorer.ofSlot(found[0]));
    }
  }

  changeWidth() {
    const field = this.fields.width, text = field.value.trim(), width = Number(text);
    if (this.refuse(field, !/^\d{1,9}$/.test(text) || width < 1, "Enter the number of slots per row, from 1 to 999999999.")) return;
    this.explorer.chooseWidth(width);
    this.explorer.firstView.arrange();
    this.explorer.refresh();
    this.explorer.boards.memory.reveal(this.explorer.boards.memory.cursor);
  }

  /* Make the choosers of the dimensions to draw, and a stepper for the index of each other dimension. */
  makeDimensions() {
    const { explorer } = this, { map } = explorer;
    const [place, slices] = ["dimensions", "slices"].map((id) => document.getElementById(id));
    this.steppers = [];
    for (const parent of [place, slices]) parent.replaceChildren();
    if (map.rank < 2 || map.empty) return;
    const options = (chosen) => map.dims.map((n, d) => {
      const option = make("option", { value: d, text: `dimension ${d} (${n})` });
      option.selected = d === chosen;
      return option;
    });
    const chooser = (label, name) => {
      const select = make("select", { id: name }, ...options(explorer[name]));
      select.addEventListener("change", () => this.chooseDimension(name, Number(select.value)));
      place.append(make("label", {}, `${label} `, select));
    };
    chooser("Rows", "rowDim");
    chooser("Columns", "columnDim");
    map.dims.forEach((n, d) => {
      if (d !== explorer.rowDim && d !== explorer.columnDim) slices.append(this.stepper(d, n));
    });
  }

  chooseDimension(name, dim) {
    const { explorer } = this, other = name === "rowDim" ? "columnDim" : "rowDim";
    if (explorer[other] === dim) explorer[other] = explorer[name];
    explorer[name] = dim;
    const { selection, map } = explorer;
    if (selection.index && !selection.padding) explorer.fixed = selection.index.slice();
    explorer.fixed = explorer.fixed.map((i, d) => (i < map.dims[d] ? i : map.zero));
    this.makeDimensions();
    this.follow();
    explorer.firstView.arrange();
    explorer.refresh();
    explorer.boards.array.reveal(explorer.boards.array.cursor);
    document.getElementById(name).focus();
  }

  stepper(dim, extent) {
    const field = make("input", { type: "text", inputmode: "numeric", size: String(extent).length + 1, "aria-label": `index of dimension ${dim}` });
    const go = (value) => {
      const { explorer } = this, { map } = explorer;
      const index = (explorer.selection.index || explorer.fixed).map((i, d) => (i < map.dims[d] ? i : map.zero));
      index[dim] = value < map.zero ? map.zero : value >= extent ? extent - map.one : value;
      explorer.select(explorer.ofIndex(index));
    };
    const by = (step) => go(this.explorer.fixed[dim] + this.explorer.map.N(step));
    field.addEventListener("change", () => {
      const found = integers(this.explorer.map, field.value), wrong = !found || found.length !== 1 || found[0] >= extent;
      const why = `Enter an index of dimension ${dim} from 0 to ${extent - this.explorer.map.one}.`;
      if (!this.refuse(field, wrong, why)) go(found[0]);
    });
    field.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      by(step);
    });
    this.steppers.push({ dim, field });
    const button = (text, step, label) => make("button", { type: "button", text, "aria-label": label, onclick: () => by(step) });
    return make("span", { class: "stepper" }, `i${dim} `, button("\u2212", -1, `dimension ${dim}: previous index`), field,
      button("+", 1, `dimension ${dim}: next index`));
  }

  /* Show the selection in the fields. */
  follow() {
    const { explorer } = this, { selection } = explorer;
    for (const { dim, field } of this.steppers) field.value = String(explorer.fixed[dim]);
    document.getElementById("color").value = explorer.color.name;
    this.fields.width.value = String(explorer.cells.memory.width);
    if (!selection) return;
    this.fields.element.value = selection.index && !selection.padding ? selection.index.join(", ") : "";
    this.fields.slot.value = String(selection.slot);
    for (const field of Object.values(this.fields)) this.refuse(field, false, "");
  }

  nextTheme() {
    const now = document.documentElement.dataset.theme || "auto";
    this.changeTheme({ auto: "dark", dark: "light", light: "auto" }[now]);
    this.explorer.state.changed();
  }

  /* A page that contains this one in a frame sends its theme, and learns the height of this page. */
  followPage(given) {
    this.takeTheme(given);
    this.explorer.tellHeight();
  }

  takeTheme(given) {
    if (given && ["auto", "dark", "light"].includes(given.theme)) this.changeTheme(given.theme);
  }

  changeTheme(theme) {
    const button = document.getElementById("theme");
    document.documentElement.dataset.theme = theme;
    button.textContent = `Colors: ${theme}`;
    this.recolor();
  }

  recolor() {
    for (const board of Object.values(this.explorer.boards)) {
      board.colors = null;
      board.redraw();
    }
  }
}
