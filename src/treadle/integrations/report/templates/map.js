// The map of passages: dots on a canvas, names as buttons above it, a card for the passage at hand.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("map-data").textContent);
  const frame = document.getElementById("map-frame");
  const canvas = document.getElementById("map-canvas");
  const card = document.getElementById("map-card");
  const status = document.getElementById("map-status");
  const labels = [...document.querySelectorAll("#map-labels .label")];
  const buttons = [...document.querySelectorAll("button[data-topic]")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const NARROW = 640; // below this width, in CSS pixels, names are numbers with a legend
  const REACH = 16; // how far from a dot the pointer may be, in CSS pixels

  let width = 0, height = 0, printing = false;
  let spots = []; // the dots in CSS pixels
  let chosen = null; // the topic shown alone
  let current = null; // the dot whose passage is shown
  let leads = []; // lines from a name that had to move to its place

  // Where things go. -----------------------------------------------------------------------------------------

  const scale = ([x, y]) => {
    const edge = width < NARROW ? 12 : 36;
    return [edge + x * (width - 2 * edge), edge + (1 - y) * (height - 2 * edge)];
  };

  function layOut() {
    width = frame.clientWidth;
    height = frame.clientHeight;
    frame.classList.toggle("narrow", width < NARROW);
    spots = data.x.map((x, i) => scale([x, data.y[i]]));
    placeLabels();
    draw();
  }

  // Names go to the median of their topic, the largest topic first; a name that would cover another one moves away
  // on a spiral to the nearest free place, and a line leads back.
  function placeLabels() {
    const taken = [];
    leads = [];
    labels.forEach((label, topic) => {
      const place = data.topics[topic].at;
      if (!place) return;
      const [x, y] = scale(place), w = label.offsetWidth, h = label.offsetHeight;
      const box = freeBox(x, y, w, h, taken);
      label.style.visibility = box ? "visible" : "hidden";
      if (!box) return;
      taken.push(box);
      label.style.transform = `translate(${box.x}px, ${box.y}px)`;
      const moved = Math.max(Math.abs(box.x + w / 2 - x) - w / 2, Math.abs(box.y + h / 2 - y) - h / 2);
      if (moved > 4) leads.push({ topic, from: [x, y], box });
    });
  }

  function freeBox(x, y, w, h, taken) {
    for (let r = 0; r < Math.hypot(width, height); r += 6) {
      const turns = Math.max(1, Math.round(r / 2));
      for (let i = 0; i < turns; i++) {
        const angle = (2 * Math.PI * i) / turns;
        const box = { x: Math.round(x + 1.6 * r * Math.cos(angle) - w / 2), y: Math.round(y + r * Math.sin(angle) - h / 2), w, h };
        if (inside(box) && !taken.some((other) => touch(box, other))) return box;
      }
    }
    return null;
  }

  const inside = (b) => b.x >= 3 && b.y >= 3 && b.x + b.w <= width - 3 && b.y + b.h <= height - 3;
  const touch = (a, b) => a.x < b.x + b.w + 3 && b.x < a.x + a.w + 3 && a.y < b.y + b.h + 3 && b.y < a.y + a.h + 3;

  // Drawing. -------------------------------------------------------------------------------------------------

  function draw() {
    const ratio = printing ? 3 : window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colours = data.palettes[dark.matches && !printing ? "dark" : "light"];
    const grey = printing ? "#57606a" : style.getPropertyValue("--soft");
    const radius = width < NARROW ? 1.7 : 2.5;
    const dots = (test, alpha, colour) => {
      pen.globalAlpha = alpha;
      spots.forEach(([x, y], i) => {
        if (!test(i)) return;
        pen.fillStyle = colour(i);
        pen.beginPath();
        pen.arc(x, y, radius, 0, 7);
        pen.fill();
      });
    };
    const own = (i) => colours[data.topics[data.topic[i]].colour];
    if (chosen === null) dots(() => true, 0.62, own);
    else {
      dots((i) => data.topic[i] !== chosen, 0.16, () => grey);
      dots((i) => data.topic[i] === chosen, 0.9, own);
    }
    pen.globalAlpha = 1;
    drawLeads(pen, colours);
    if (current !== null) drawRing(pen, own(current), printing ? "#1b1f24" : style.getPropertyValue("--ink"));
  }

  function drawLeads(pen, colours) {
    pen.lineWidth = 1.2;
    for (const { topic, from, box } of leads) {
      if (chosen !== null && chosen !== topic) continue;
      pen.strokeStyle = pen.fillStyle = colours[data.topics[topic].colour];
      pen.beginPath();
      pen.moveTo(...from);
      pen.lineTo(clamp(from[0], box.x, box.x + box.w), clamp(from[1], box.y, box.y + box.h));
      pen.stroke();
    }
  }

  function drawRing(pen, fill, edge) {
    pen.fillStyle = fill;
    pen.strokeStyle = edge;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(...spots[current], 6, 0, 7);
    pen.fill();
    pen.stroke();
  }

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // One passage. ---------------------------------------------------------------------------------------------

  function show(i) {
    if (i === current) return;
    current = i;
    card.hidden = i === null;
    if (i !== null) fillCard(i);
    draw();
  }

  function fillCard(i) {
    const topic = data.topics[data.topic[i]];
    card.style.setProperty("--c", `var(--t${topic.colour})`);
    card.replaceChildren(
      line("when", `${data.speakers[data.speaker[i]]}, ${data.year[i]}`), line("which", topic.name), line("text", data.text[i]));
    const [x, y] = spots[i], w = card.offsetWidth, h = card.offsetHeight;
    const left = x + 16 + w < width ? x + 16 : x - 16 - w;
    const top = width < NARROW ? (y < height / 2 ? height - h - 8 : 8) : clamp(y - h / 2, 8, Math.max(8, height - h - 8));
    card.style.transform = `translate(${clamp(left, 8, Math.max(8, width - w - 8))}px, ${top}px)`;
  }

  function line(name, text) {
    const element = document.createElement("p");
    element.className = name;
    element.dir = "auto";
    element.textContent = text;
    return element;
  }

  function nearest(event) {
    const area = canvas.getBoundingClientRect();
    const x = event.clientX - area.left, y = event.clientY - area.top;
    let best = null, least = REACH * REACH;
    spots.forEach(([sx, sy], i) => {
      const gap = (sx - x) ** 2 + (sy - y) ** 2;
      if (gap < least && (chosen === null || data.topic[i] === chosen)) [best, least] = [i, gap];
    });
    return best;
  }

  // From passage to passage in the order of the years, within the chosen topic when there is one.
  const order = data.year.map((_, i) => i).sort((a, b) => data.year[a] - data.year[b] || a - b);
  function step(by) {
    const list = chosen === null ? order : order.filter((i) => data.topic[i] === chosen);
    if (!list.length) return;
    const at = list.indexOf(current);
    show(list[at < 0 ? (by > 0 ? 0 : list.length - 1) : (at + by + list.length) % list.length]);
  }

  // One topic. -----------------------------------------------------------------------------------------------

  function choose(topic) {
    chosen = topic;
    frame.classList.toggle("chosen", topic !== null);
    for (const button of buttons)
      if (button.hasAttribute("aria-pressed")) button.setAttribute("aria-pressed", String(Number(button.dataset.topic) === topic));
    if (topic !== null && current !== null && data.topic[current] !== topic) show(null);
    tellStatus();
    draw();
  }

  function tellStatus() {
    status.replaceChildren();
    if (chosen === null) return status.append(`All ${data.x.length.toLocaleString("en")} passages`);
    const count = data.topic.filter((topic) => topic === chosen).length;
    const back = document.createElement("button");
    back.type = "button";
    back.textContent = "show all";
    back.onclick = () => choose(null);
    status.append(`${data.topics[chosen].name}: ${count.toLocaleString("en")} of ${data.x.length.toLocaleString("en")} passages, `, back);
  }

  // Events. --------------------------------------------------------------------------------------------------

  canvas.addEventListener("pointermove", (event) => { if (event.pointerType !== "touch") show(nearest(event)); });
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") show(null); });
  canvas.addEventListener("click", (event) => {
    const hit = nearest(event);
    if (hit === null && chosen !== null) choose(null);
    show(hit);
  });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    step(by);
  });
  canvas.addEventListener("blur", () => show(null));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    show(null);
    choose(null);
  });
  for (const button of buttons)
    button.addEventListener("click", () => {
      const topic = Number(button.dataset.topic);
      choose(chosen === topic && !button.classList.contains("show") ? null : topic);
      if (button.classList.contains("show")) document.getElementById("map").scrollIntoView();
    });
  dark.addEventListener("change", draw);
  new ResizeObserver(layOut).observe(frame);
  for (const name of ["beforeprint", "afterprint"])
    addEventListener(name, () => {
      printing = name === "beforeprint";
      frame.classList.toggle("printing", printing); // a fixed size: the page is laid out for paper only after this
      layOut();
    });
  tellStatus();
})();
