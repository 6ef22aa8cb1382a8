// The colours of queues: a queue has the same colour in all pictures, and within one no two are alike, if there are
// colours for all. They are the CSS variables --c0 to --c9, which light, dark and high contrast define.

const COLOURS = 10;

function hash(name) {
  let found = 2166136261;
  for (const letter of name) found = Math.imul(found ^ letter.codePointAt(0), 16777619) >>> 0;
  return found % COLOURS;
}

const known = new Map(); // by name, of all pictures up to now

// Numbers of colours by name, for several pictures that are seen together. What had a colour before keeps it, unless
// another name of the same picture has it; a new name gets one that no other has, as long as there is one.
export function coloursTogether(pictures) {
  const beside = new Map();
  for (const names of pictures) {
    for (const name of names) beside.set(name, new Set([...(beside.get(name) ?? []), ...names]));
  }
  const found = new Map();
  const wanted = [...beside.keys()].sort();
  for (const name of [...wanted.filter((each) => known.has(each)), ...wanted.filter((each) => !known.has(each))]) {
    const near = new Set([...beside.get(name)].map((each) => found.get(each)));
    const far = known.has(name) ? new Set() : new Set(known.values());
    const first = known.get(name) ?? hash(name);
    const all = Array.from({ length: COLOURS }, (_, index) => (first + index) % COLOURS);
    const colour = all.find((each) => !near.has(each) && !far.has(each)) ?? all.find((each) => !near.has(each)) ?? first;
    found.set(name, colour);
    if (!known.has(name)) known.set(name, colour);
  }
  return found;
}

// The same for one picture.
export const coloursOf = (names) => coloursTogether([[...names]]);

export const variable = (colour) => `var(--c${colour})`;

// The value of a CSS variable, for canvases; they are drawn again when `onScheme` tells.
export const value = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function onScheme(changed) {
  const queries = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"].map(matchMedia);
  queries.forEach((query) => query.addEventListener("change", changed));
  return () => queries.forEach((query) => query.removeEventListener("change", changed));
}
