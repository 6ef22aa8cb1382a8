// A time axis for pictures: where a moment is, which moments are labelled, and by which words.
// All times are seconds since the epoch; labels are in the reader's zone and language.

import { html } from "/lib/preact.js";
import { span, whole } from "/lib/format.js";
import { words } from "/lib/words.js";

const MINUTE = 60, HOUR = 3600, DAY = 86400;
const QUARTER = 900; // the offsets of all zones are multiples of it

const SECONDS = [
  1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
];
const DAYS = [1, 2, 7, 14];
const MONTHS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200];
const MONDAY = 4; // 1970-01-05, in days since the epoch

// Where a moment is in a picture so many pixels wide that shows from..to, and which moment is at a place.
export function scale(from, to, width) {
  const perPixel = Math.max(to - from, 1e-9) / Math.max(width, 1);
  return { perPixel, x: (time) => (time - from) / perPixel, time: (x) => from + x * perPixel };
}

// The moments to label, at most about `most`: [{time, label, major}]. `major` ones begin a day (or a year) and are
// labelled with it. Hours are those of the reader's clocks: of a day with 25 hours one hour comes twice, and its
// label says by which time; of a day with 23 hours one is left out.
export function ticks(from, to, most = 8) {
  if (!(to > from) || !Number.isFinite(from) || !Number.isFinite(to)) return [];
  const least = (to - from) / Math.max(1, most);
  const seconds = SECONDS.find((each) => each >= least);
  if (seconds !== undefined) return labelled(clockTimes(from, to, seconds), seconds);
  const days = DAYS.find((each) => each * DAY >= least);
  if (days !== undefined) return dayTicks(from, to, days);
  return monthTicks(from, to, MONTHS.find((each) => each * 30 * DAY >= least) ?? MONTHS.at(-1));
}

// The same relative to a moment: [{time, label, major}], `major` is the moment itself. The label of a time is
// made by `words(seconds)`, such as `relative` of words.js.
export function relativeTicks(from, to, now, most, words) {
  if (!(to > from) || !Number.isFinite(from) || !Number.isFinite(to)) return [];
  const least = (to - from) / Math.max(1, most);
  const all = [...SECONDS, ...DAYS.map((each) => each * DAY), ...MONTHS.map((each) => each * 30 * DAY)];
  const step = all.find((each) => each >= least) ?? all.at(-1);
  const found = [];
  for (let place = Math.ceil((from - now) / step); now + place * step <= to; place++) {
    found.push({ time: now + place * step, label: words(place * step), major: place === 0 });
  }
  return found;
}

// How far a time is from now, as a label: "+2 h", "−30 min", "now".
export function relative(seconds) {
  if (Math.abs(seconds) < 0.5) return words.axis.now;
  return `${seconds < 0 ? "−" : "+"}${span(Math.abs(seconds))}`;
}

const CHARACTER = 6.2; // pixels of a label's character, about
const LABEL = 84; // pixels from one label to the next, at least

// An axis above or below a picture: the reader's clock, and below that the time from `now` (null: none of that).
// Its labels are hidden from screen readers, as each picture says its times in a table or text.
export function Axis({ from, to, width, now = null }) {
  if (!(width > 0) || !(to > from)) return null;
  const { x } = scale(from, to, width);
  const most = Math.max(2, width / LABEL);
  const fits = ({ time, label }) => x(time) > (label.length * CHARACTER) / 2 && x(time) < width - (label.length * CHARACTER) / 2;
  const clock = ticks(from, to, most);
  const away = now === null ? [] : relativeTicks(from, to, now, most / 1.3, relative);
  const height = now === null ? 22 : 38;
  return html`<svg class="axis" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} aria-hidden="true">
    <title>${`${whole(from)} – ${whole(to)}`}</title>
    ${clock.map((tick) => html`<g key=${tick.time} class=${tick.major ? "major" : null}>
      <line x1=${x(tick.time)} x2=${x(tick.time)} y1="0" y2="5" />
      ${fits(tick) && html`<text x=${x(tick.time)} y="16">${tick.label}</text>`}</g>`)}
    ${away.map((tick) => fits(tick) && html`<text key=${`r${tick.time}`} class=${tick.major ? "relative now" : "relative"} x=${x(tick.time)} y="32">${tick.label}</text>`)}
  </svg>`;
}

// The range that is `factor` times as long, in which `anchor` is at the same place; never outside of `bounds`.
export function zoomed(range, factor, anchor, bounds) {
  const [from, to] = range;
  const length = Math.min(Math.max((to - from) * factor, bounds.shortest), bounds.to - bounds.from);
  const begins = anchor - ((anchor - from) / (to - from)) * length;
  return within([begins, begins + length], bounds);
}

// The range so many seconds later, or earlier; it stops at the bounds.
export function panned(range, seconds, bounds) {
  return within([range[0] + seconds, range[1] + seconds], bounds);
}

// A range of the same length that is inside of the bounds, or as long as they are.
export function within([from, to], bounds) {
  const length = Math.min(to - from, bounds.to - bounds.from);
  const begins = Math.min(Math.max(from, bounds.from), bounds.to - length);
  return [begins, begins + length];
}

function clockTimes(from, to, step) {
  const found = [];
  const stride = Math.min(step, QUARTER);
  for (let place = Math.ceil(from / stride); place * stride <= to; place++) {
    const time = place * stride;
    if (step <= QUARTER || sinceMidnight(time) % step === 0) found.push(time);
  }
  return found;
}

function sinceMidnight(time) {
  const date = new Date(time * 1000);
  return date.getHours() * HOUR + date.getMinutes() * MINUTE + date.getSeconds();
}

function dayTicks(from, to, step) {
  const found = [];
  const first = new Date(from * 1000);
  for (let after = 0; ; after++) {
    const date = new Date(first.getFullYear(), first.getMonth(), first.getDate() + after);
    const time = date.getTime() / 1000;
    if (time > to) return found;
    const number = Math.round(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / (DAY * 1000));
    if (time >= from && (number - MONDAY) % step === 0) {
      found.push({ time, label: dayOf(time), major: date.getDate() === 1 });
    }
  }
}

function monthTicks(from, to, step) {
  const found = [];
  const first = new Date(from * 1000);
  const months = first.getFullYear() * 12 + first.getMonth();
  for (let place = Math.floor(months / step) * step; ; place += step) {
    const date = new Date(Math.floor(place / 12), place % 12, 1);
    const time = date.getTime() / 1000;
    if (time > to) return found;
    const major = date.getMonth() === 0;
    const shown = major ? { year: "numeric" } : { month: "short" };
    if (time >= from) found.push({ time, label: spelled(time, shown), major });
  }
}

function labelled(times, step) {
  const clock = { hour: "2-digit", minute: "2-digit", ...(step < MINUTE ? { second: "2-digit" } : {}) };
  const found = [];
  let earlier = null;
  for (const time of times) {
    const day = dayOf(time);
    const major = sinceMidnight(time) === 0 || (earlier !== null && earlier.day !== day);
    const hour = spelled(time, clock);
    // The hour that comes twice at the end of summer time: the second time it says which time that is.
    const again = earlier !== null && clockOf(time - HOUR) === clockOf(time) && dayOf(time - HOUR) === day;
    const label = major ? day : again ? spelled(time, { ...clock, timeZoneName: "short" }) : hour;
    found.push({ time, label, major });
    earlier = { day };
  }
  return found;
}

function clockOf(time) {
  const date = new Date(time * 1000);
  return `${date.getHours()}:${date.getMinutes()}`;
}

// The day of a moment, such as "27 Nov".
function dayOf(time) {
  return spelled(time, { day: "numeric", month: "short" });
}

const formats = new Map();

function spelled(time, shown) {
  const key = JSON.stringify(shown);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(undefined, shown));
  return formats.get(key).format(new Date(time * 1000));
}
