// The cells of nodes: where each is, and how it is drawn.

import { value } from "/lib/colours.js";

const LABEL = 18; // pixels of the line above a block
const BLOCK_GAP = 16;
const LETTER = 6.6; // pixels of a letter of a label, about
export const NOT_READY = 1;
export const CORDONED = 2;
const FEW = 6; // blocks that share the width
const SLOT = 5; // pixels that a device needs to be shown by itself

// The size of cells: large where few nodes are, and small where many are.
export function sizeFor(nodes) {
  const size = nodes > 1000 ? 13 : nodes > 500 ? 18 : nodes > 150 ? 26 : nodes > 40 ? 36 : 52;
  return { size, gap: size > 20 ? 4 : 2 };
}

// Places of the nodes of blocks, [{title, nodes}], as boxes that flow from left to right: {blocks, places, height},
// where a place is {x, y, node}.
export function layOut(blocks, width, { size, gap }) {
  const step = size + gap;
  const most = Math.max(1, Math.floor((width + gap) / step));
  const placed = [];
  const places = [];
  const share = blocks.length <= FEW ? Math.floor((width - BLOCK_GAP * (blocks.length - 1)) / blocks.length / step) : 0;
  let x = 0;
  let y = 0;
  let tall = 0;
  for (const { title, nodes } of blocks) {
    const least = title ? Math.ceil(Math.min(title.length * LETTER, 170) / step) : 0;
    const square = Math.max(Math.ceil(Math.sqrt(nodes.length * 3)), Math.min(share, nodes.length));
    const columns = Math.min(most, Math.max(least, square));
    const wide = columns * step - gap;
    if (x > 0 && x + wide > width) {
      x = 0;
      y += tall + BLOCK_GAP;
      tall = 0;
    }
    const top = y + (title ? LABEL : 0);
    placed.push({ title, x, y, wide: Math.min(wide, width) });
    nodes.forEach((node, index) => places.push({
      node, x: x + (index % columns) * step, y: top + Math.floor(index / columns) * step,
    }));
    tall = Math.max(tall, (title ? LABEL : 0) + Math.ceil(nodes.length / columns) * step - gap);
    x += wide + BLOCK_GAP;
  }
  return { blocks: placed, places, height: Math.max(y + tall, size) };
}

// Which place is at a point, with the gaps around it.
export function at(places, { size, gap }, x, y) {
  const near = gap / 2;
  return places.findIndex((each) => x >= each.x - near && x < each.x + size + near && y >= each.y - near && y < each.y + size + near);
}

// The place above (-1) or below (1) another one; -1: there is none.
export function beside(places, from, direction) {
  const here = places[from];
  let best = -1;
  let least = Infinity;
  places.forEach((each, index) => {
    const away = (each.y - here.y) * direction;
    if (away <= 0) return;
    const far = away * 1000 + Math.abs(each.x - here.x);
    if (far < least) [best, least] = [index, far];
  });
  return best;
}

// Draws places. `colour(queue)` gives a number of a colour, or null for the rest; `dim(queue)` whether it stands back.
export function draw(canvas, layout, width, shape, { colour, dim }) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(layout.height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${layout.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const inks = inksNow();
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "top";
  pen.fillStyle = inks.quiet;
  for (const { title, x, y, wide } of layout.blocks) if (title) pen.fillText(fitted(pen, title, wide), x, y);
  for (const place of layout.places) cell(pen, place, shape.size, inks, colour, dim);
}

function inksNow() {
  const names = ["ground", "empty", "quiet", "rest", "bad", "bad-ground", "warn", "warn-ground", "strong-line", "text"];
  const inks = Object.fromEntries(names.map((name) => [name, value(`--${name}`)]));
  inks.queues = Array.from({ length: 10 }, (_, number) => value(`--c${number}`));
  inks.patterns = matchMedia("(prefers-contrast: more), (forced-colors: active)").matches;
  return inks;
}

function fitted(pen, title, wide) {
  if (pen.measureText(title).width <= wide) return title;
  let cut = title.slice(0, Math.ceil(wide / 3));
  while (cut && pen.measureText(`${cut}…`).width > wide) cut = cut.slice(0, -1);
  return `${cut}…`;
}

function cell(pen, { x, y, node }, size, inks, colour, dim) {
  const lost = node.state & NOT_READY;
  const cordoned = node.state & CORDONED;
  pen.fillStyle = lost ? inks["bad-ground"] : cordoned ? inks["warn-ground"] : node.total > 0 ? inks.empty : inks.ground;
  pen.fillRect(x, y, size, size);
  let below = 0;
  for (const part of node.parts) {
    const before = Math.round((size * Math.min(below, node.total)) / node.total);
    below += part.amount;
    const now = Math.round((size * Math.min(below, node.total)) / node.total);
    const number = colour(part.queue);
    pen.globalAlpha = dim(part.queue) ? 0.45 : 1;
    pen.fillStyle = dim(part.queue) || number === null ? inks.rest : inks.queues[number];
    pen.fillRect(x, y + size - now, size, now - before);
    if (inks.patterns && number !== null && now > before) pattern(pen, x, y + size - now, size, now - before, number, inks.ground);
    pen.globalAlpha = 1;
  }
  if (node.total > 1 && size / node.total >= SLOT) {
    pen.fillStyle = inks.ground;
    for (let slot = 1; slot < node.total; slot += 1) pen.fillRect(x, y + Math.round((size * slot) / node.total) - 0.5, size, 1);
  }
  if (lost) marked(pen, x, y, size, inks.bad, 1);
  else if (cordoned) marked(pen, x, y, size, inks.warn, 0);
  else outlined(pen, x, y, size, node.total > 0 ? inks["strong-line"] : inks.rest);
}

function outlined(pen, x, y, size, ink) {
  pen.strokeStyle = ink;
  pen.lineWidth = 1;
  pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
}

// A node that takes no new pods: lines across it, slanted or level.
function marked(pen, x, y, size, ink, slant) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, size, size);
  pen.clip();
  pen.strokeStyle = ink;
  pen.lineWidth = size > 16 ? 2 : 1.4;
  pen.beginPath();
  for (let line = slant ? -size : 3; line < size; line += 5) {
    pen.moveTo(x, y + line + slant * size);
    pen.lineTo(x + size, y + line);
  }
  pen.stroke();
  pen.restore();
  pen.setLineDash(slant ? [] : [3, 2]);
  pen.strokeStyle = ink;
  pen.lineWidth = 2;
  pen.strokeRect(x + 1, y + 1, size - 2, size - 2);
  pen.setLineDash([]);
}

// Where contrast is high, each colour has lines of its own.
function pattern(pen, x, y, wide, tall, number, ink) {
  if (!number) return;
  pen.save();
  pen.beginPath();
  pen.rect(x, y, wide, tall);
  pen.clip();
  pen.strokeStyle = ink;
  pen.lineWidth = 1;
  pen.beginPath();
  const every = number > 5 ? 3 : 5;
  const [across, slant] = [[0, 0], [1, 1], [1, -1], [1, 0], [0, 0], [1, 1], [1, -1], [1, 0], [0, 0], [1, 1]][number];
  for (let line = -wide; line < wide + tall; line += every) {
    if (across) {
      pen.moveTo(x, y + line + (slant > 0 ? wide : 0));
      pen.lineTo(x + wide, y + line + (slant < 0 ? wide : 0));
    } else {
      pen.moveTo(x + line, y);
      pen.lineTo(x + line, y + tall);
    }
  }
  pen.stroke();
  pen.restore();
}
