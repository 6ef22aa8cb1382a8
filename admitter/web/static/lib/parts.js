// Parts of views that look and behave alike everywhere.

import { html, useEffect, useRef, useState } from "/lib/preact.js";
import { Refused, href } from "/lib/api.js";
import { ago, near, whole } from "/lib/format.js";
import { words } from "/lib/words.js";

// The heading of a view; it names the tab too.
export function Title({ children, of = "" }) {
  useEffect(() => {
    document.title = `${of || children} – Admitter`;
  }, [of, children]);
  return html`<h1><bdi>${children}</bdi></h1>`;
}

// A refused or failed request: what the server says, or that it can't be reached.
export function Failure({ error }) {
  if (!error) return null;
  return html`<p class="error" role="alert">${error instanceof Refused ? error.message : words.api.unreachable}</p>`;
}

// What stands above a view: what an answer is of, and what went wrong since.
export function State({ answer, error, children = "" }) {
  if (error) return html`<${Failure} error=${error} />`;
  const now = answer?.taken;
  return html`<p class="state" role="status" data-taken=${now ?? null}>${now ? `${words.asOf(near(now, now))}${children ? `: ${children}` : ""}` : words.reading}</p>`;
}

export const Link = ({ path, query = {}, children, ...rest }) =>
  html`<a href=${href(path, query)} ...${rest}><bdi>${children}</bdi></a>`;

// `from`: a namespace that uses the queue, if one is known: a user that may not see all queues is known there.
export const queueHref = (name, from = "") => href(["queue", name], from ? { from } : {});
export const QueueLink = ({ name, title = "", from = "" }) => html`<a href=${queueHref(name, from)}><bdi>${title || name}</bdi></a>`;

export const WorkloadLink = ({ namespace, name }) => html`<${Link} path=${["workload", namespace, name]}>${name}<//>`;

// A moment, with the whole time and zone on hover.
export function Time({ at, now = null, kind = "near" }) {
  const said = kind === "ago" ? ago(at, now) : near(at, now ?? at);
  return html`<time datetime=${new Date(at * 1000).toISOString()} title=${whole(at)}>${said}</time>`;
}

// Why a section is empty, and what to do.
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

// A bar of parts: [{value, kind: "own" | "borrowed" | … , label}] of `most`, with marks; its words stand beside it.
export function Bar({ parts, most, marks = [], label }) {
  const whole = Math.max(most, parts.reduce((sum, part) => sum + part.value, 0)) || 1;
  return html`<span class="bar" role="img" aria-label=${label}>
    ${parts.filter((part) => part.value > 0).map((part) => html`<span class=${`part ${part.kind}`} style=${{ width: `${(100 * part.value) / whole}%` }}></span>`)}
    ${marks.filter((mark) => mark > 0 && mark < whole).map((mark) => html`<span class="mark" style=${{ left: `${(100 * mark) / whole}%` }}></span>`)}
  </span>`;
}

// Which colour is which name.
export const Legend = ({ entries }) => html`<ul class="legend">
  ${entries.map(({ name, colour, title }) => html`<li key=${name}><span class="swatch" style=${{ background: colour }}></span><bdi>${title ?? name}</bdi></li>`)}</ul>`;

// A choice of a few: buttons of which one is pressed.
export const Choice = ({ label, value, options, onChange }) => html`<div class="choice" role="group" aria-label=${label}>
  ${options.map(([key, said]) => html`<button type="button" key=${key} aria-pressed=${String(key === value)} onClick=${() => onChange(key)}>${said}</button>`)}</div>`;

// A command that is copied by a button.
export function Command({ children }) {
  const [copied, setCopied] = useState(false);
  const end = useRef(0);
  useEffect(() => () => clearTimeout(end.current), []);
  const copy = async () => {
    await navigator.clipboard.writeText(children);
    setCopied(true);
    clearTimeout(end.current);
    end.current = setTimeout(() => setCopied(false), 2000);
  };
  return html`<p class="command"><code>${children}</code>
    <button type="button" onClick=${copy} aria-label=${words.copy.label(children)}>${copied ? words.copy.done : words.copy.copy}</button>
    <span class="unseen" role="status">${copied ? words.copy.done : ""}</span></p>`;
}
