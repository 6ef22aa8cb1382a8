// What a workload asks for, flavor by flavor, over what is free, could be borrowed, or is kept from it.

import { html } from "/lib/preact.js";
import { Other } from "/views/workload_other.js";
import { words } from "/lib/words.js";

const said = words.workload.needs;
const KINDS = ["free", "borrowable", "claimed", "cut", "kept"];

export function Needs({ answer }) {
  const groups = grouped(answer.flavors);
  const several = new Set(answer.flavors.map((each) => each.podSet)).size > 1;
  const seen = new Set(answer.flavors.flatMap((each) => (each.mismatch ? [] : KINDS.filter((kind) => amounts(each)[kind] > 0))));
  return html`<section class="needs"><h2>${said.title}</h2>
    <ul class="legend">
      <li><span class="swatch part covered"></span>${said.kinds.covered}</li><li><span class="swatch part missing"></span>${said.kinds.missing}</li>
      ${KINDS.filter((kind) => seen.has(kind)).map((kind) => html`<li key=${kind}><span class=${`swatch part ${kind}`}></span>${said.kinds[kind]}</li>`)}</ul>
    ${groups.map(({ key, podSet, flavor, rows, mismatch }) => html`<div key=${key} class=${rows.some((row) => row.binding) ? "flavor binding" : "flavor"}>
      <h3>${flavor === "any_node" ? said.anyNode : html`<bdi>${flavor}</bdi>`}${several && html` <span class="quiet">${said.for} <bdi>${podSet}</bdi></span>`}
        ${rows.some((row) => row.binding) && html` <span class="badge warn">${said.binding}</span>`}
        ${rows.some((row) => !row.possible) && html` <span class="badge bad">${said.never}</span>`}</h3>
      ${mismatch && html`<p class="mismatch" dir="auto">${mismatch}</p>`}
      ${rows.map((row) => html`<${Need} key=${row.resource} row=${row} />`)}
    </div>`)}</section>`;
}

// The rows of one pod set in one flavor belong together.
function grouped(flavors) {
  const found = new Map();
  for (const each of flavors) {
    const key = JSON.stringify([each.podSet, each.flavor]);
    if (!found.has(key)) found.set(key, { key, podSet: each.podSet, flavor: each.flavor, rows: [], mismatch: null });
    if (each.mismatch) found.get(key).mismatch = each.mismatch;
    else found.get(key).rows.push(each);
  }
  return [...found.values()];
}

function amounts(row) {
  return {
    free: row.free.value, borrowable: row.borrowable.value, claimed: row.claimed.value, cut: row.cutByMax.value,
    kept: row.kept.reduce((sum, each) => sum + each.amount.value, 0),
  };
}

function Need({ row }) {
  const found = amounts(row);
  const there = KINDS.reduce((sum, kind) => sum + found[kind], 0);
  const most = Math.max(row.asked.value, there) || 1;
  const covered = row.asked.value - row.short.value;
  const wide = (value) => ({ width: `${(100 * value) / most}%` });
  const short = row.short.value > 0;
  return html`<div class="need">
    <p class="what"><bdi>${row.resource}</bdi>${row.binding && html`<span class="unseen">, ${said.binding}</span>`}</p>
    <div class="pair" aria-hidden="true">
      <div class="row asked"><span class="part covered" style=${wide(covered)}></span><span class="part missing" style=${wide(row.short.value)}></span></div>
      <div class="row there">${KINDS.map((kind) => found[kind] > 0 && html`<span key=${kind} class=${`part ${kind}`} style=${wide(found[kind])}></span>`)}</div>
    </div>
    <p class="numbers"><span class="amount">${said.asked(row.asked.words)}</span><span class="amount">${said.free(row.free.words)}</span><span class="amount">${said.borrowable(row.borrowable.words)}</span>
      <strong class=${short ? "amount short" : "amount"}>${short ? said.short(row.short.words) : said.enough}</strong></p>
    <ul class="notes">
      ${row.cutByMax.value > 0 && html`<li>${said.cut(row.cutByMax.words)}</li>`}
      ${row.kept.map((each) => html`<li key=${each.title}><bdi>${each.title}</bdi>${said.kept(each.amount.words)}</li>`)}
      ${row.claims.map((each, index) => html`<li key=${index}>${said.claimed(each.amount.words)} <${Other} other=${each} />, ${said.owns(each.owner)}</li>`)}
      ${!row.possible && html`<li>${said.most(row.most.words)}</li>`}
    </ul></div>`;
}
