// Quota and use of a queue: a bar for each resource in each flavor, and the same in words.

import { html } from "/lib/preact.js";
import { quantity } from "/lib/format.js";
import { Bar, Empty } from "/lib/parts.js";
import { words } from "/lib/words.js";

export function QuotaBars({ uses }) {
  if (uses.length === 0) return html`<${Empty}>${words.quotaBars.none}<//>`;
  return html`<ul class="quota-bars">${uses.map((use) => {
    const title = words.queue.resourceIn(use.resource, use.flavor);
    const own = Math.min(use.used, use.used - use.borrowed);
    const parts = [
      { value: own, kind: "own" }, { value: use.borrowed, kind: "borrowed" },
      ...(use.lent > 0 ? [{ value: use.lent, kind: "lent" }] : []),
    ];
    const amount = (value) => quantity(use.resource, value);
    const text = words.quotaBars.use({
      used: amount(use.used), min: amount(use.min), borrowed: use.borrowed > 0 && amount(use.borrowed), lent: use.lent > 0 && amount(use.lent),
      max: use.max !== null && amount(use.max), free: use.free && amount(use.free.value),
    });
    return html`<li key=${title}><span class="quota-title"><bdi>${title}</bdi></span>
      <${Bar} parts=${parts} most=${Math.max(use.min, use.used + use.lent)} marks=${[use.min]} label=${`${title}: ${text}`} />
      <span class="quota-words">${text}</span></li>`;
  })}</ul>`;
}
