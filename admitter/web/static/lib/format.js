// Times in the reader's zone, durations and amounts, as texts.

import { words } from "/lib/words.js";

const clockOf = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dayOf = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const wholeOf = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const plainOf = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const DAY = 86400;

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

// A number of a resource in cores, bytes or devices, as users write it.
export function quantity(resource, value) {
  if (!inBytes(resource)) return number(value);
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const power = value > 0 ? Math.min(names.length - 1, Math.floor(Math.log2(value) / 10)) : 0;
  return `${number(value / 1024 ** power)} ${names[power]}`;
}
