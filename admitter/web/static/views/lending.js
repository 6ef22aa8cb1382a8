// Which place lends how much to which queue: a picture of streams, and the same in sentences.

import { html, useEffect, useLayoutEffect, useRef, useState } from "/lib/preact.js";
import { useAnswer } from "/lib/api.js";
import { coloursOf, variable } from "/lib/colours.js";
import { quantity } from "/lib/format.js";
import { Failure, Link, QueueLink } from "/lib/parts.js";
import { words } from "/lib/words.js";

const say = words.quota.loans;
const MOST_DRAWN = 10; // places on each side; the others are one
const GAP = 6; // pixels between places
const BAR = 10; // pixels: the width of a place
const LEAST = 16; // pixels: the height of a place
const REST = "\u0000rest";

// `loans`: a place, flavor and resource as the address has them.
export function Lending({ loans, close }) {
  const asked = parsed(loans);
  const { answer, error } = useAnswer(asked ? "/api/lending" : null, asked ?? {});
  const heading = useRef(null);
  useEffect(() => heading.current?.focus(), [loans]);
  if (!asked) return null;
  const keys = (event) => event.key === "Escape" && close();
  return html`<section class="lending" aria-labelledby="lending-heading" onKeyDown=${keys}>
    <div class="tools"><h2 id="lending-heading" tabindex="-1" ref=${heading}>${say.title(asked.resource, asked.flavor)} <bdi>${answer?.place.title ?? asked.name}</bdi></h2>
      <button type="button" onClick=${close}>${say.close}</button></div>
    <${Failure} error=${error} />
    ${answer && (answer.loans.length ? html`<${Picture} answer=${answer} /><${Sentences} answer=${answer} />` : html`<p class="empty">${say.none}</p>`)}
    <p class="quiet small">${say.how}</p></section>`;
}

function parsed(text) {
  try {
    const [kind, name, flavor, resource] = JSON.parse(text);
    return [kind, name, flavor, resource].every((each) => typeof each === "string") ? { kind, name, flavor, resource } : null;
  } catch {
    return null;
  }
}

const idOf = (place) => (place ? `${place.kind}/${place.name}` : "");

// Loans between the largest places, and those of all others as one on each side.
function drawnOf(answer) {
  const sides = ["lender", "borrower"].map((side) => {
    const sums = new Map();
    for (const loan of answer.loans) sums.set(idOf(loan[side]), (sums.get(idOf(loan[side])) ?? 0) + loan.amount.value);
    const names = [...sums].sort(([, one], [, other]) => other - one).map(([id]) => id);
    return new Set(names.length > MOST_DRAWN ? names.slice(0, MOST_DRAWN - 1) : names);
  });
  const flows = new Map();
  const titles = new Map();
  for (const loan of answer.loans) {
    const [from, to] = ["lender", "borrower"].map((side, index) => {
      const id = idOf(loan[side]);
      if (!sides[index].has(id)) return REST;
      titles.set(id, loan[side] ? loan[side].title : say.beyond);
      return id;
    });
    const key = JSON.stringify([from, to]);
    flows.set(key, (flows.get(key) ?? 0) + loan.amount.value);
  }
  if (answer.moreAmount.value > 0) {
    const key = JSON.stringify([REST, REST]);
    flows.set(key, (flows.get(key) ?? 0) + answer.moreAmount.value);
  }
  titles.set(REST, say.others);
  return { flows: [...flows].map(([key, value]) => [...JSON.parse(key), value]), titles };
}

// Places of one side from top to bottom, each as high as what it lends or borrows.
function placed(flows, side, scale) {
  const sums = new Map();
  for (const flow of flows) sums.set(flow[side], (sums.get(flow[side]) ?? 0) + flow[2]);
  let top = 0;
  return new Map([...sums].sort(([a, one], [b, other]) => (a === REST) - (b === REST) || other - one).map(([id, value]) => {
    const place = { value, top, height: value * scale, used: 0 };
    top += Math.max(LEAST, place.height) + GAP;
    return [id, place];
  }));
}

function Picture({ answer }) {
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.min(900, box.current.clientWidth));
    measure();
    const watching = new ResizeObserver(measure);
    watching.observe(box.current);
    return () => watching.disconnect();
  }, []);
  const { flows, titles } = drawnOf(answer);
  const whole = flows.reduce((sum, [, , value]) => sum + value, 0);
  const scale = Math.max(60, 26 * Math.max(...[0, 1].map((side) => new Set(flows.map((flow) => flow[side])).size))) / whole;
  const [left, right] = [placed(flows, 0, scale), placed(flows, 1, scale)];
  const ends = [left, right].map((places) => Math.max(...[...places.values()].map((each) => each.top + Math.max(LEAST, each.height))));
  const height = Math.max(...ends) + 4;
  const text = Math.max(118, width * 0.32); // the width of the names
  const [start, end] = [text, width - text - BAR];
  const colours = coloursOf([...left.keys()]);
  const amount = (value) => quantity(answer.resource, value);
  const streams = [...flows].sort((one, other) => right.get(one[1]).top - right.get(other[1]).top).map(([from, to, value]) => {
    const [a, b, thick] = [left.get(from), right.get(to), value * scale];
    const [y, z, half] = [a.top + a.used + thick / 2, b.top + b.used + thick / 2, (start + BAR + end) / 2];
    a.used += thick;
    b.used += thick;
    const said = say.stream(titles.get(from), titles.get(to), amount(value));
    return html`<path class="stream" key=${said} d=${`M${start + BAR} ${y}C${half} ${y} ${half} ${z} ${end} ${z}`} style=${{ stroke: variable(colours.get(from)), strokeWidth: Math.max(1, thick) }}><title>${said}</title></path>`;
  });
  const side = (places, x, anchor) => [...places].map(([id, place]) => html`<g key=${id}>
    <rect x=${x} y=${place.top} width=${BAR} height=${Math.max(2, place.height)} style=${{ fill: places === left ? variable(colours.get(id)) : "var(--borrowed)" }} />
    <text x=${anchor === "end" ? x - 6 : x + BAR + 6} y=${place.top + Math.max(LEAST, place.height) / 2} text-anchor=${anchor} dominant-baseline="middle">${cut(titles.get(id), text)} <tspan class="amount">${amount(place.value)}</tspan><title>${titles.get(id)}</title></text></g>`);
  return html`<div class="streams" ref=${box}>${width > 0 && html`<svg width=${width} height=${height} role="img" aria-label=${say.picture(amount(whole), left.size, right.size)}>
    ${streams}${side(left, start, "end")}${side(right, end, "start")}</svg>`}</div>`;
}

// As much of a name as there is room for; the whole one is in its title, and in the sentences.
function cut(title, width) {
  const room = Math.floor((width - 38) / 7.2);
  const plain = title.replace(/^ClusterQueue /, "");
  return plain.length > room ? `${plain.slice(0, Math.max(3, room - 1))}…` : plain;
}

function Sentences({ answer }) {
  const borrowers = grouped(answer.loans.filter((loan) => loan.borrows), "borrower");
  const lenders = grouped(answer.loans.filter((loan) => loan.lends && !loan.borrows), "lender");
  const parts = (loans, side) => loans.map((loan, index) => html`${index > 0 && ", "}${say.part[side](quantity(answer.resource, loan.amount.value))} <${Name} place=${loan[side]} />`);
  return html`<ul class="sentences">
    ${borrowers.map(([id, loans]) => html`<li key=${id}><${Name} place=${loans[0].borrower} /> ${say.borrows(sum(answer, loans), answer.resource, answer.flavor)} ${parts(loans, "lender")}</li>`)}
    ${lenders.map(([id, loans]) => html`<li key=${id}><${Name} place=${loans[0].lender} /> ${say.lends(sum(answer, loans), answer.resource, answer.flavor)} ${parts(loans, "borrower")}</li>`)}
    ${answer.more > 0 && html`<li>${say.more(answer.more, quantity(answer.resource, answer.moreAmount.value))}</li>`}</ul>`;
}

const sum = (answer, loans) => quantity(answer.resource, loans.reduce((all, loan) => all + loan.amount.value, 0));

function grouped(loans, side) {
  const found = new Map();
  for (const loan of loans) found.set(idOf(loan[side]), [...(found.get(idOf(loan[side])) ?? []), loan]);
  return [...found];
}

function Name({ place }) {
  if (!place) return say.beyond;
  if (place.kind === "queue") return html`<${QueueLink} name=${place.name} title=${place.title.replace(/^ClusterQueue /, "")} />`;
  return html`<${Link} path=${["quota"]} query=${{ find: place.name }}>${place.title}<//>`;
}
