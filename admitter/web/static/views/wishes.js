// What is wished in the address, and quantities as numbers.

const FACTORS = {
  "": 1, n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};
const PARTS = new Set(["min", "max", "weight"]);
const MOST = 500;

export const keyOf = (queue, resource, flavor, part) => JSON.stringify([queue, resource, flavor, part]);

// Wishes as one text: QUEUE|RESOURCE|FLAVOR|PART=QUANTITY, with a semicolon between them.
export const spelled = (wishes) => Object.entries(wishes)
  .map(([key, value]) => `${JSON.parse(key).map(encodeURIComponent).join("|")}=${encodeURIComponent(value)}`).join(";");

// Wishes of a text, by their keys; what can't be read is left out.
export function decoded(text) {
  const found = {};
  for (const each of (text ?? "").split(";").slice(0, MOST)) {
    const [place, value, ...more] = each.split("=");
    const parts = place.split("|");
    if (value === undefined || more.length || parts.length !== 4 || !PARTS.has(parts[3])) continue;
    try {
      found[keyOf(...parts.map(decodeURIComponent))] = decodeURIComponent(value).slice(0, 64);
    } catch {
      // it is no address that was made here
    }
  }
  return found;
}

// A quantity as a number; null if it is none.
export function numberOf(text) {
  const match = /^\+?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]{1,2}))?$/.exec(String(text).trim());
  if (!match) return null;
  return Number(match[1]) * (match[3] !== undefined ? 10 ** Number(match[3]) : FACTORS[match[2] ?? ""]);
}

// A number of a slider as a quantity: cores in thousandths where they are no whole ones, bytes in the largest unit.
export function quantityOf(resource, number, step) {
  if (step >= 1024 && number > 0) {
    const unit = ["Ti", "Gi", "Mi", "Ki"].find((each) => Math.abs(number / FACTORS[each] - Math.round(number / FACTORS[each])) < 1e-9);
    if (unit) return `${Math.round(number / FACTORS[unit])}${unit}`;
  }
  const whole = Math.round(number * 1000);
  return whole % 1000 === 0 ? String(whole / 1000) : `${whole}m`;
}
