"use strict";

/* Descriptions of elements, and small helpers for the document. */

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/* 1234567 -> "1,234,567": only in sentences, because commas separate indices. */
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

function humanBytes(count) {
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = Number(count), unit = -1;
  if (size < 1024) return `${size} byte${size === 1 ? "" : "s"}`;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${size.toFixed(1)} ${units[unit]}`;
}

function factsText(data) {
  const share = (100 * data.padding).toFixed(1);
  const count = (n, name) => `${grouped(n)} ${name}${n === 1 ? "" : "s"}`;
  const parts = [count(data.elements, "element")];
  parts.push(`${count(data.size, "slot")}${data.bits === null ? "" : ` of ${count(data.bits, "bit")}`}`);
  if (data.bytes !== null) parts.push(humanBytes(data.bytes));
  parts.push(`${share}% padding`);
  return parts.join(" \u00b7 ");
}

/* The position of a slot in bytes, or in bits of one byte. */
function bytesText(map, slot) {
  const bits = map.data.bits;
  if (bits === null) return "";
  const first = BigInt(slot) * BigInt(bits), last = first + BigInt(bits) - 1n;
  if (bits % 8) {
    const at = first % 8n;
    return `, byte ${first / 8n}, bit${bits === 1 ? ` ${at}` : `s ${at} to ${at + BigInt(bits) - 1n}`}`;
  }
  return bits === 8 ? `, byte ${first / 8n}` : `, bytes ${first / 8n} to ${last / 8n}`;
}

function selectionText(map, selection, depth) {
  const { index, slot, padding, unknown } = selection;
  if (unknown) return `Slot ${slot}${bytesText(map, slot)}: this layout is too large to find its element.`;
  if (padding) {
    const where = index ? `, at [${index.join(", ")}] beyond the array` : "";
    const bytes = bytesText(map, slot);
    return `Slot ${slot}${bytes}${bytes && ","} is padding${where}.`;
  }
  const tile = depth ? `, tile (${map.prefix(index, depth).digits.join(", ")})` : "";
  const bank = map.data.bank ? `, bank ${map.bitsOf(slot, "bank")}, row ${map.bitsOf(slot, "row")}` : "";
  return `Element [${index.join(", ")}] is in slot ${slot}${bytesText(map, slot)}${tile}${bank}.`;
}

/* "2, 3" -> two integers of the map's kind, or null if the text is not a list of integers. */
function integers(map, text) {
  const parts = text.trim().replace(/^[[(]|[\])]$/g, "").split(",").map((part) => part.trim());
  if (parts.length === 1 && parts[0] === "") return [];
  if (!parts.every((part) => /^\d{1,19}$/.test(part))) return null;
  return parts.map(map.N);
}

/* One level of the digits as an item of the list. */
function levelItem(line, current) {
  const boxes = line.digits.map(({ name, value, extent, stride, inner, words }) => {
    const box = make("span", { class: inner ? "digit inner" : "digit" });
    if (words) box.append(make("span", { class: "words", text: words }));
    box.append(make("span", { class: "value", text: String(value) }));
    const below = stride === undefined ? `of ${extent}` : `\u00d7 ${stride}`;
    box.append(make("span", { class: "name", text: name }), make("span", { class: "below", text: below }));
    return box;
  });
  const item = make("li", current ? { "aria-current": "step" } : {});
  item.append(make("span", { class: "title", text: line.title }));
  if (boxes.length) item.append(make("span", { class: "boxes" }, ...boxes));
  if (line.text) item.append(make("span", { class: "sum", text: line.text }));
  return item;
}
