// Preact, and templates for it that keep nothing. In the bundle a part of a template that never changes is made once;
// such a part keeps the tree that it was drawn in first, and so what has left the page since.

import htm from "/vendor/htm.js";
import { h } from "/vendor/preact.js";

export * from "/vendor/preact.js";

const ANEW = 3; // as htm writes it: this element, and what is in it, may be another one next time

export const html = htm.bind(function (...parts) {
  this[0] = ANEW;
  return h(...parts);
});
