// Expected starts as bars on one axis of time, from now on.

import { html } from "/lib/preact.js";
import { near, within } from "/lib/format.js";
import { words } from "/lib/words.js";

const STEPS = [60, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800, 2592000, 31536000];
const MOST_TICKS = 4;

// The axis of some starts, from `now` on: it ends where the medians do, so that one that is far away hides no other.
export function axisOf(starts, now) {
  const ends = starts.filter((start) => start.median !== null).map((start) => start.median - now);
  const longest = Math.max(60, ...ends) * 1.3;
  const step = STEPS.find((each) => longest / each <= MOST_TICKS) ?? STEPS[STEPS.length - 1];
  const until = Math.ceil(longest / step) * step;
  const ticks = [];
  for (let at = step; at < until; at += step) ticks.push(at);
  return { now, until: now + until, ticks: ticks.map((each) => now + each) };
}

const at = (axis, moment) => `${Math.max(0, Math.min(100, (100 * (moment - axis.now)) / (axis.until - axis.now)))}%`;

// The ticks of the axis, as the head of a column.
export const AxisHead = ({ axis }) => html`<span class="start-axis" aria-hidden="true">
  <span class="tick now">${words.units.now}</span>
  ${axis.ticks.map((tick) => html`<span class="tick" key=${tick} style=${{ left: at(axis, tick) }}>${near(tick, axis.now)}</span>`)}</span>`;

// When a start is expected, in words.
export function startWords(start, now) {
  if (!start.inTime) return words.starts.late(start.playedUntil !== null ? within(start.playedUntil, now) : "");
  if (start.median === null) return words.starts.unknown(start.unknown);
  const median = within(start.median, now);
  if (start.earliest === null) return median;
  if (start.latest === null) return words.starts.orLater(median, within(start.earliest, now));
  const [first, last] = [near(start.earliest, now), near(start.latest, now)];
  return words.starts.between(median, first === last ? "" : first, last);
}

// The bar of one start; its words stand beside it.
export function StartBar({ start, axis }) {
  if (!start || start.median === null) return html`<span class="start-bar" aria-hidden="true"></span>`;
  const from = start.earliest ?? start.median;
  const open = start.latest === null || start.latest > axis.until;
  const width = `calc(${open ? "100%" : at(axis, start.latest)} - ${at(axis, from)})`;
  return html`<span class=${open ? "start-bar open" : "start-bar"} aria-hidden="true">
    <span class="range" style=${{ left: at(axis, from), width }}></span>
    <span class="median" style=${{ left: at(axis, start.median) }}></span></span>`;
}
