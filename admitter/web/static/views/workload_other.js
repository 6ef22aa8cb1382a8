// Another workload that an answer names, if the user may see it.

import { html } from "/lib/preact.js";
import { Link } from "/lib/parts.js";
import { words } from "/lib/words.js";

export function Other({ other }) {
  if (!other.visible) return html`<span class="quiet">${words.workload.hidden}</span>`;
  return html`<${Link} path=${["workload", other.namespace, other.name]}>${`${other.namespace}/${other.name}`}<//>`;
}
