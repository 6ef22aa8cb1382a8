// Times in the reader's zone, durations and amounts, as texts.

import { words } from "/lib/words.js";

const clockOf = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dayOf = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const wholeOf = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const plainOf = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const gibibytesOf = new Intl.NumberFormat("en", { maximumFractionDigits: 3, useGrouping: false, roundingMode: "halfEven" });
const DAY = 86400;
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const BYTE_STEPS = [...[1, 2, 5].map((each) => each * MIB), ...[-2, -1, 0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((each) => each * 10 ** power * GIB))];

// All moments are in seconds since the epoch.
export const clock = (moment) => clockOf.format(new Date(moment * 1000));
export const whole = (moment) => wholeOf.format(new Date(moment * 1000));

// A moment as it is read at another one: the time alone within half a day, else with the day.
export const near = (moment, now) =>
  (Math.abs(moment - now) < DAY / 2 ? clockOf : dayOf).format(new Date(moment * 1000));

// A duration by its two largest units: "3 h 20 min".
export function span(seconds) {
  const left = Math.max(0, Math.round(seconds));
  const units = [[DAY, words.units.day], [3600, words.units.hour], [60, words.units.minute], [1, words.units.second]];
  const first = units.findIndex(([size]) => left >= size);
  if (first < 0) return `0 ${words.units.second}`;
  const [size, name] = units[first];
  const rest = units[first + 1];
  const more = rest ? Math.floor((left % size) / rest[0]) : 0;
  return `${Math.floor(left / size)} ${name}${more ? ` ${more} ${rest[1]}` : ""}`;
}

export const ago = (moment, now) => words.units.ago(span(now - moment));
export const within = (moment, now) => (moment <= now ? words.units.now : words.units.within(span(moment - now)));
export const number = (value) => plainOf.format(value);

// Whether a resource is counted in bytes; a device's memory, such as nvidia.com/gpu-memory, is not.
export const inBytes = (resource) => /^(memory|storage|ephemeral-storage|hugepages-.*)$/.test(resource);

// A number of a resource in cores, bytes or devices, as users write it. Bytes are in Gi, as `display` of the server
// writes them in sentences beside: less than 10Mi exactly, and a half to the even neighbour.
export function quantity(resource, value) {
  if (!inBytes(resource)) return number(value);
  return value < GIB / 100 ? fewBytes(Math.round(value)) : `${gibibytesOf.format(value / GIB)}Gi`;
}

function fewBytes(bytes) {
  const [size, suffix] = [[MIB, "Mi"], [1e6, "M"]].find(([each]) => bytes && bytes % each === 0) ?? [1, ""];
  return `${bytes / size}${suffix}`;
}

// Steps of an axis: of bytes those that are round in Gi; of all else, those of the plot.
export const stepsOf = (resource) => (inBytes(resource) ? BYTE_STEPS : undefined);
