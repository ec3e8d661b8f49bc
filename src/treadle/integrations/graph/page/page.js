"use strict";
const steps = JSON.parse(document.getElementById("data").textContent);
const svg = document.getElementById("graph");
const view = document.getElementById("view");
const details = document.getElementById("details");
const find = document.getElementById("find");
const boxes = [...document.querySelectorAll(".step")];
const edges = [...document.querySelectorAll(".edge")].map((path) => ({ path, from: +path.dataset.from, to: +path.dataset.to }));
const size = { width: +svg.dataset.width, height: +svg.dataset.height };
const neededBy = steps.map(() => []);
steps.forEach((step, i) => step.needs.forEach((dep) => neededBy[dep].push(i)));
const needs = steps.map((step) => step.needs);

/* Pan and zoom: the view is a scale and a shift in screen pixels. */
const PAD = 36;
const SMALLEST_READABLE = 0.6;
let scale = 1, shiftX = 0, shiftY = 0;
const show = () => view.setAttribute("transform", `translate(${shiftX} ${shiftY}) scale(${scale})`);

function fitScale() {
  const { width, height } = svg.getBoundingClientRect();
  return Math.min((width - 2 * PAD) / Math.max(size.width, 1), (height - 2 * PAD) / Math.max(size.height, 1), 1.25);
}

function place(atLeast) {
  const { width, height } = svg.getBoundingClientRect();
  scale = Math.max(fitScale(), atLeast, 0.01);
  shiftX = size.width * scale + 2 * PAD > width ? PAD : (width - size.width * scale) / 2;
  shiftY = (height - size.height * scale) / 2;
  show();
}

function zoom(factor, x, y) {
  const box = svg.getBoundingClientRect();
  const [px, py] = [x ?? box.width / 2, y ?? box.height / 2];
  const next = Math.min(Math.max(scale * factor, Math.min(fitScale(), 0.6) / 2), 4);
  shiftX = px - (px - shiftX) * (next / scale);
  shiftY = py - (py - shiftY) * (next / scale);
  scale = next;
  show();
}

svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = svg.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });

let drag = null;
svg.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, moved: false }; });
window.addEventListener("pointermove", (event) => {
  if (!drag) return;
  if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return;
  if (!drag.moved) svg.setPointerCapture(event.pointerId);
  shiftX += event.clientX - drag.x;
  shiftY += event.clientY - drag.y;
  drag = { x: event.clientX, y: event.clientY, moved: true };
  svg.classList.add("dragging");
  show();
});
for (const kind of ["pointerup", "pointercancel"]) window.addEventListener(kind, (event) => {
  if (drag && !drag.moved && kind === "pointerup") pick(stepOf(event.target));
  drag = null;
  svg.classList.remove("dragging");
});

/* Trace: everything a step needs, and everything that needs it, near and far. */
let picked = null;
const stepOf = (element) => { const box = element.closest?.(".step"); return box ? +box.dataset.step : null; };

function reach(start, links) {
  const seen = new Set([start]);
  const stack = [start];
  while (stack.length) for (const next of links[stack.pop()]) if (!seen.has(next)) { seen.add(next); stack.push(next); }
  return seen;
}

function light(nodes, edgeIsLit) {
  svg.classList.add("tracing");
  boxes.forEach((box) => box.classList.toggle("lit", nodes.has(+box.dataset.step)));
  edges.forEach((edge) => edge.path.classList.toggle("lit", edgeIsLit(edge)));
}

function trace(step) {
  if (step === null) return search();
  const up = reach(step, needs), down = reach(step, neededBy);
  light(new Set([...up, ...down]), ({ from, to }) => (up.has(from) && up.has(to)) || (down.has(from) && down.has(to)));
}

function search() {
  const word = find.value.trim().toLowerCase();
  if (!word) return svg.classList.remove("tracing");
  light(new Set(steps.flatMap((step, i) => (`${step.name} ${step.id} ${step.label} ${step.state ?? ""}`.toLowerCase().includes(word) ? [i] : []))), () => false);
}

/* Details of one step. */
function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function links(others) {
  const cell = document.createElement("dd");
  for (const other of others) {
    const button = element("button", [steps[other].name, steps[other].label].filter(Boolean).join(" · "));
    button.addEventListener("click", () => { pick(other); reveal(other); });
    cell.append(button);
  }
  return cell;
}

function pick(step) {
  picked = step;
  boxes.forEach((box) => box.classList.toggle("picked", +box.dataset.step === step));
  trace(step);
  details.hidden = step === null;
  if (step === null) return;
  const { id, name, label, state, time, reason } = steps[step];
  const list = document.createElement("dl");
  const row = (title, cell) => list.append(element("dt", title), cell);
  row("id", element("dd", id, "code"));
  if (label) row("arguments", element("dd", label, "code"));
  if (state) { const cell = element("dd", "", state); cell.append(element("span", state, "dot")); row("state", cell); }
  if (reason) row("reason", element("dd", reason));
  if (time) row(time.startsWith("~") ? "expected" : "time", element("dd", time.replace("~", "")));
  if (needs[step].length) row("needs", links(needs[step]));
  if (neededBy[step].length) row("needed by", links(neededBy[step]));
  const close = element("button", "\u2715", "close");
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => pick(null));
  details.replaceChildren(close, element("h2", name), list);
}

function reveal(step) {
  const box = boxes[step].getBoundingClientRect(), frame = svg.getBoundingClientRect();
  if (box.left < frame.left + 8 || box.right > frame.right - 8) shiftX += frame.left + frame.width / 2 - (box.left + box.right) / 2;
  if (box.top < frame.top + 8 || box.bottom > frame.bottom - 8) shiftY += frame.top + frame.height / 2 - (box.top + box.bottom) / 2;
  show();
}

/* The nearest step in a direction: along the edges sideways, within the column up and down. */
function neighbour(step, key) {
  const at = (i) => boxes[i].getBoundingClientRect();
  const here = at(step);
  const near = (others) => others.reduce((best, i) => (best === null || Math.abs(at(i).top - here.top) < Math.abs(at(best).top - here.top) ? i : best), null);
  if (key === "ArrowRight") return near(neededBy[step]);
  if (key === "ArrowLeft") return near(needs[step]);
  const side = key === "ArrowDown" ? 1 : -1;
  return near(steps.map((_, i) => i).filter((i) => Math.abs(at(i).left - here.left) < 1 && (at(i).top - here.top) * side > 0.5));
}

boxes.forEach((box, i) => {
  const { name, label, state, time } = steps[i];
  box.setAttribute("tabindex", "0");
  box.setAttribute("role", "button");
  box.setAttribute("aria-label", [name, label, state, time].filter(Boolean).join(", "));
  box.addEventListener("pointerenter", () => { if (!drag?.moved) trace(i); });
  box.addEventListener("pointerleave", () => trace(picked));
  box.addEventListener("focus", () => { if (box.matches(":focus-visible")) { trace(i); reveal(i); } });
  box.addEventListener("blur", () => trace(picked));
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { find.value = ""; pick(null); return; }
  if (event.target === find || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = stepOf(event.target);
  if (step !== null && (event.key === "Enter" || event.key === " ")) pick(step);
  else if (step !== null && event.key.startsWith("Arrow")) { const next = neighbour(step, event.key); if (next !== null) boxes[next].focus(); }
  else if (event.key === "+" || event.key === "=") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "0") place(0);
  else return;
  event.preventDefault();
});

find.addEventListener("input", search);
document.getElementById("in").addEventListener("click", () => zoom(1.25));
document.getElementById("out").addEventListener("click", () => zoom(0.8));
document.getElementById("fit").addEventListener("click", () => place(0));
place(SMALLEST_READABLE);
