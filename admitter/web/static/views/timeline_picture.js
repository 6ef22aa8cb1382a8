// Draws the bars of the timeline on a canvas, and finds which one is at a place.

import { coloursOf, value } from "/lib/colours.js";
import { scale, ticks } from "/lib/axis.js";

// Pixels of a lane, and lanes of a group's head and strip, by how high bars are.
export const LANES = { uniform: 18, size: 6 };
const WIDE_ENOUGH = 44; // pixels of a bar that has room for a name
const LEAST = 1.5; // pixels of the shortest bar
const NEAR = 3; // pixels beside a bar that still mean it
const EVICTED = "evicted";
const FORECAST = "forecast";
const RUNNING = "running";

// The bars of an answer as objects. Times are in seconds since the epoch; `to` null: it is not known when it ends.
export function decoded(answer) {
  const { base, texts, bars, joined, ranges, stops } = answer;
  const text = (place) => (place < 0 ? "" : texts[place]);
  const moment = (after) => (after === null ? null : base + after);
  return (bars.lane ?? []).map((lane, index) => {
    const from = base + bars.at[index];
    const range = ranges[index]?.map(moment) ?? [null, null, null, null];
    const stop = stops[index];
    return {
      lane, high: bars.high[index], from, to: bars.long[index] < 0 ? null : from + bars.long[index],
      how: text(bars.how[index]), queue: text(bars.queue[index]), namespace: text(bars.namespace[index]),
      name: text(bars.name[index]), flavors: text(bars.flavors[index]), pods: bars.pods[index],
      joined: joined[index]?.[0] ?? 1, evicted: joined[index]?.[1] ?? Number(text(bars.how[index]) === EVICTED),
      starts: { earliest: range[0], latest: range[1] }, ends: { earliest: range[2], latest: range[3], known: index in ranges && range[2] !== null },
      stop: stop ? { reason: text(stop[0]), rule: text(stop[1]), namespace: text(stop[2]), name: text(stop[3]), expected: stop[4] === 1 } : null,
      key: `${text(bars.namespace[index])}/${text(bars.name[index])}/${base + bars.at[index]}/${bars.how[index] === FORECAST}`,
    };
  });
}

// What is drawn: {bars, groups, lane (pixels), range, now, reached, top (pixels), width, height, selected, others}.
export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.patterns = new Map();
  }

  // The colours of now: a scheme, a contrast or forced colours may have changed.
  forget() {
    this.patterns.clear();
    this.ink = null;
  }

  draw(shown) {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.max(1, Math.round(shown.width * ratio)), Math.max(1, Math.round(shown.height * ratio))];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, shown.width, shown.height);
    this.ink ??= inks();
    this.colours = coloursOf(shown.bars.map((bar) => bar.queue).filter((queue) => queue !== ""));
    this.at = scale(...shown.range, shown.width);
    this.ground(context, shown);
    const visible = shown.bars.filter((bar) => this.isVisible(bar, shown));
    for (const bar of visible) this.whiskers(context, bar, shown);
    for (const bar of visible) this.bar(context, bar, shown);
    this.line(context, this.at.x(shown.now), shown.height, this.ink.accent, 2, []);
    const selected = visible.find((bar) => bar.key === shown.selected);
    if (selected) this.outline(context, selected, shown);
  }

  box(bar, shown) {
    const left = this.at.x(bar.from);
    const right = bar.to === null ? this.openEnd(bar, shown) : this.at.x(bar.to);
    const y = bar.lane * shown.lane - shown.top;
    return { left, right: Math.max(right, left + LEAST), top: y + 1, height: bar.high * shown.lane - 2 };
  }

  // A bar of which no end is known goes as far as the forecast, or to now if there is none.
  openEnd(bar, shown) {
    return this.at.x(Math.max(bar.from, shown.reached ?? shown.now, shown.now));
  }

  isVisible(bar, shown) {
    const { left, right, top, height } = this.box(bar, shown);
    const latest = bar.ends.latest === null ? right : this.at.x(bar.ends.latest);
    return Math.max(right, latest) >= 0 && left <= shown.width && top + height >= 0 && top <= shown.height;
  }

  // Lines of time, the future, and where the forecast ends.
  ground(context, shown) {
    const now = this.at.x(shown.now);
    if (now < shown.width) {
      context.fillStyle = this.ink.raised;
      context.fillRect(Math.max(0, now), 0, shown.width, shown.height);
    }
    const reached = shown.reached === null ? now : this.at.x(shown.reached);
    if (reached < shown.width) {
      context.fillStyle = this.pattern(context, this.ink.line, 8);
      context.fillRect(Math.max(0, reached, now), 0, shown.width, shown.height);
    }
    for (const tick of ticks(...shown.range, shown.width / 90)) {
      this.line(context, this.at.x(tick.time), shown.height, this.ink.line, tick.major ? 1.5 : 0.75, []);
    }
    context.fillStyle = this.ink.strong;
    for (const group of shown.groups) {
      const y = Math.round(group.first * shown.lane - shown.top);
      context.fillRect(0, y, shown.width, 1);
      if (shown.others[group.name]) this.others(context, shown.others[group.name], y + shown.head, shown);
      if (shown.use[group.name]) this.use(context, shown.use[group.name], y + shown.head, shown);
      context.fillStyle = this.ink.strong;
    }
  }

  line(context, x, height, colour, width, dash) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, 0);
    context.lineTo(Math.round(x) + 0.5, height);
    context.stroke();
    context.setLineDash([]);
  }

  // How many of other namespaces hold quota: a step line that is filled.
  others(context, { from, step, counts }, y, shown) {
    const most = Math.max(...counts, 1);
    const high = shown.head - 4;
    context.fillStyle = this.ink.rest;
    context.globalAlpha = 0.5;
    counts.forEach((count, place) => {
      const left = this.at.x(from + place * step);
      const right = Math.min(this.at.x(from + (place + 1) * step), this.at.x(shown.now));
      const part = (high * count) / most;
      if (right > left) context.fillRect(left, y + high - part + 2, right - left + 0.3, part);
    });
    context.globalAlpha = 1;
  }

  // What a queue uses as a step line that is filled, and its quota as a line; fainter after now.
  use(context, { points, min }, y, shown) {
    const most = Math.max(min, ...points.map(([, amount]) => amount)) || 1;
    const high = shown.head - 4;
    const now = this.at.x(shown.now);
    context.fillStyle = this.ink.accent;
    points.forEach(([time, amount], place) => {
      const left = this.at.x(time);
      const right = place + 1 < points.length ? this.at.x(points[place + 1][0]) : shown.width;
      const part = (high * amount) / most;
      for (const [from, to, alpha] of [[left, Math.min(right, now), 0.4], [Math.max(left, now), right, 0.2]]) {
        context.globalAlpha = alpha;
        if (to > from) context.fillRect(from, y + high - part + 2, to - from, part);
      }
    });
    context.globalAlpha = 1;
    context.strokeStyle = this.ink.text;
    context.lineWidth = 1;
    context.setLineDash([5, 3]);
    context.beginPath();
    const line = Math.round(y + high - (high * min) / most + 2) + 0.5;
    context.moveTo(0, line);
    context.lineTo(shown.width, line);
    context.stroke();
    context.setLineDash([]);
  }

  // The range of a start and an end beyond the bar, below all bars.
  whiskers(context, bar, shown) {
    if (bar.starts.earliest === null && !bar.ends.known) return;
    const { left, right, top, height } = this.box(bar, shown);
    context.strokeStyle = this.colour(bar);
    context.globalAlpha = 0.7;
    context.lineWidth = 1.5;
    context.setLineDash([3, 2]);
    context.beginPath();
    const middle = Math.round(top + height / 2) + 0.5;
    if (bar.starts.earliest !== null) this.stretch(context, this.at.x(bar.starts.earliest), left, middle);
    if (bar.ends.known) this.stretch(context, right, bar.ends.latest === null ? shown.width : this.at.x(bar.ends.latest), middle);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  stretch(context, from, to, y) {
    if (to <= from) return;
    context.moveTo(from, y);
    context.lineTo(to, y);
  }

  bar(context, bar, shown) {
    const { left, right, top, height } = this.box(bar, shown);
    const now = this.at.x(shown.now);
    const colour = this.colour(bar);
    const past = Math.min(right, bar.how === FORECAST ? left : bar.how === RUNNING ? Math.max(now, left + LEAST) : right);
    context.fillStyle = this.ink.ground;
    context.fillRect(left, top, right - left, height);
    if (past > left) this.fill(context, left, past, top, height, this.ink.forced ? this.ink.ground : colour, bar.joined > 1 ? 0.7 : 0.5);
    if (right > past) this.expected(context, bar, past, right, top, height, colour);
    context.strokeStyle = colour;
    context.lineWidth = 1;
    const dashed = bar.how === FORECAST;
    context.setLineDash(dashed ? [3, 2] : []);
    if (right - left > 3) context.strokeRect(left + 0.5, top + 0.5, right - left - 1, height - 1);
    context.setLineDash([]);
    const stops = bar.evicted > 0 || (bar.stop !== null && !bar.stop.expected && bar.how === RUNNING);
    if (stops || bar.how === "failed" || bar.how === "outOfTime") {
      this.mark(context, right, top, height, stops ? this.ink.bad : this.ink.warn, false);
    } else if (bar.stop?.expected) this.mark(context, right, top, height, this.ink.bad, true);
    if (right - left > WIDE_ENOUGH) this.name(context, bar, Math.max(left, 0), Math.min(right, shown.width), top, height);
  }

  fill(context, left, right, top, height, colour, alpha) {
    context.globalAlpha = this.ink.forced ? 1 : alpha;
    context.fillStyle = colour;
    context.fillRect(left, top, right - left, height);
    context.globalAlpha = 1;
  }

  // The expected part: hatched, and fainter from the earliest end on.
  expected(context, bar, left, right, top, height, colour) {
    const sure = bar.ends.known ? Math.min(Math.max(this.at.x(bar.ends.earliest), left), right) : left;
    context.fillStyle = this.pattern(context, colour, 6);
    context.globalAlpha = 0.85;
    context.fillRect(left, top, sure - left, height);
    context.globalAlpha = 0.45;
    context.fillRect(sure, top, right - sure, height);
    context.globalAlpha = 1;
  }

  // An eviction: a thick line at its end with a cross, open if it is only expected.
  mark(context, x, top, height, colour, open) {
    context.fillStyle = colour;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    if (!open) context.fillRect(x - 3, top, 3, height);
    const half = Math.min(4, height / 3);
    const [middle, y] = [x - 3 - half - 1, top + height / 2];
    context.beginPath();
    context.moveTo(middle - half, y - half);
    context.lineTo(middle + half, y + half);
    context.moveTo(middle - half, y + half);
    context.lineTo(middle + half, y - half);
    context.stroke();
  }

  name(context, bar, left, right, top, height) {
    const said = bar.joined > 1 ? `× ${bar.joined}` : bar.name;
    if (height < 12 || right - left < WIDE_ENOUGH / 2) return;
    context.save();
    context.beginPath();
    context.rect(left, top, right - left - 12, height);
    context.clip();
    context.fillStyle = this.ink.text;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    // A name is drawn from left to right whatever is in it: it turns nothing around it.
    context.direction = "ltr";
    context.fillText(plain(said), left + 4, top + height / 2 + 0.5);
    context.restore();
  }

  outline(context, bar, shown) {
    const { left, right, top, height } = this.box(bar, shown);
    context.strokeStyle = this.ink.text;
    context.lineWidth = 2;
    context.strokeRect(left - 1, top - 1, right - left + 2, height + 2);
    for (const [one, other] of [[bar.starts.earliest, bar.starts.latest], [bar.ends.earliest, bar.ends.latest]]) {
      if (one === null) continue;
      const [from, to] = [this.at.x(one), other === null ? shown.width : this.at.x(other)];
      context.fillStyle = this.ink.text;
      context.fillRect(from, top + height, 1.5, 5);
      context.fillRect(from, top + height + 2, Math.max(to - from, 1), 1.5);
      if (other !== null) context.fillRect(to, top + height, 1.5, 5);
    }
  }

  colour(bar) {
    if (this.ink.forced) return this.ink.text;
    return this.colours.has(bar.queue) ? this.ink.queues[this.colours.get(bar.queue)] : this.ink.rest;
  }

  pattern(context, colour, size) {
    const key = `${colour} ${size}`;
    if (!this.patterns.has(key)) this.patterns.set(key, hatched(context, colour, size));
    return this.patterns.get(key);
  }

  // The bar at a place of the canvas; the nearest of those that are about there.
  hit(x, y, shown) {
    if (!this.at) return null;
    let best = null;
    for (const bar of shown.bars) {
      const { left, right, top, height } = this.box(bar, shown);
      if (y < top - 1 || y > top + height + 1 || x < left - NEAR || x > right + NEAR) continue;
      const away = Math.max(left - x, x - right, 0);
      if (best === null || away < best.away) best = { bar, away };
    }
    return best?.bar ?? null;
  }
}

// Marks of direction and other invisible characters are left out of what is drawn.
const plain = (said) => said.replace(/[\p{Cc}\p{Cf}]/gu, "");

function hatched(context, colour, size) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const drawing = tile.getContext("2d");
  drawing.strokeStyle = colour;
  drawing.lineWidth = size > 6 ? 0.8 : 1.6;
  drawing.beginPath();
  for (const shift of [-size, 0, size]) {
    drawing.moveTo(shift, size);
    drawing.lineTo(shift + size, 0);
  }
  drawing.stroke();
  return context.createPattern(tile, "repeat");
}

function inks() {
  const forced = matchMedia("(forced-colors: active)").matches;
  const names = { text: "--text", ground: "--ground", raised: "--raised", line: "--line", strong: "--strong-line", accent: "--accent", bad: "--bad", warn: "--warn", rest: "--rest" };
  const found = Object.fromEntries(Object.entries(names).map(([name, variable]) => [name, value(variable)]));
  const queues = Array.from({ length: 10 }, (_, number) => value(`--c${number}`));
  if (!forced) return { ...found, queues, forced };
  const system = { text: "CanvasText", ground: "Canvas", raised: "Canvas", line: "GrayText", strong: "CanvasText", accent: "Highlight", bad: "CanvasText", warn: "CanvasText", rest: "GrayText" };
  return { ...system, queues, forced };
}
