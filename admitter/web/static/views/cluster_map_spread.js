// How what is free is spread over nodes, and which pods fit on none.

import { html } from "/lib/preact.js";
import { inBytes, number } from "/lib/format.js";
import { QueueLink, WorkloadLink } from "/lib/parts.js";
import { words } from "/lib/words.js";
import { amount, nodesOf, resourceTitle } from "/views/cluster_map_model.js";

const said = words.cluster.spread;
const stuck = words.cluster.stuck;
const GIB = 1024 ** 3;
const TALL = 56; // pixels of the tallest column

export function Spread({ answer, flavor }) {
  const found = answer.spread.find((each) => each.flavor === (flavor ?? null)) ?? answer.spread[0];
  const { resource } = answer;
  return html`<section class="map-spread" aria-label=${said.label}>
    <p class="said">${sentence(found, resource)}</p>
    ${found.total > 0 && html`<${Histogram} found=${found} resource=${resource} /><${Fits} found=${found} resource=${resource} />`}
    <${Stuck} answer=${answer} />
  </section>`;
}

// "38 GPUs free on 23 of 250 nodes; the largest free block on one node is 4. A pod of 8 GPUs fits on no node."
function sentence(found, resource) {
  if (found.total === 0) return said.none(resourceTitle(resource));
  if (found.free === 0) return said.full(amount(resource, found.total));
  const some = found.bins.reduce((sum, [least, , nodes]) => sum + (least > 0 ? nodes : 0), 0);
  const first = said.free(amount(resource, found.free), number(some), nodesOf(found.nodes), amount(resource, found.largest));
  const none = found.fits.find(([, , pods]) => pods === 0);
  const last = found.fits.at(-1);
  if (none) return `${first} ${said.noFit(amount(resource, none[0]))}`;
  return last ? `${first} ${said.fit(amount(resource, last[0]), last[2])}` : first;
}

function Histogram({ found, resource }) {
  const most = Math.max(1, ...found.bins.map(([, , nodes]) => nodes));
  const single = found.bins.every(([least, top]) => least === top);
  const short = (top) => number(inBytes(resource) ? top / GIB : top);
  const label = ([least, top]) => (single || top === 0 ? amount(resource, top) : said.upTo(amount(resource, top)));
  return html`<div><h2>${(single ? said.histogram : said.histogramUpTo)((inBytes(resource) ? words.cluster.gibibytes : words.cluster.plural)(resource))}</h2><ol class="map-histogram">
    ${found.bins.map((bin) => html`<li key=${bin[1]} class=${bin[1] === 0 ? "none" : ""} title=${said.column(label(bin), nodesOf(bin[2]))}>
      ${bin[2] > 0 ? number(bin[2]) : ""}<span class="column" style=${{ height: `${Math.round((TALL * bin[2]) / most)}px` }}></span>
      <span class="label" aria-hidden="true">${short(bin[1])}</span><span class="unseen">${said.column(label(bin), nodesOf(bin[2]))}</span></li>`)}</ol></div>`;
}

function Fits({ found, resource }) {
  return html`<div><h2>${said.fits}</h2><ul class="map-fits">
    ${found.fits.map(([size, , pods]) => html`<li key=${size} class=${pods ? "" : "none"}>${amount(resource, size)}: <b>${said.times(pods && number(pods))}</b></li>`)}</ul>
    <p class="quiet small">${said.scope}</p></div>`;
}

function Stuck({ answer }) {
  const { waiting, noNode, resource } = answer;
  const pods = Object.values(waiting.counts).reduce((sum, each) => sum + each, 0);
  const why = (each) => stuck.why[each.why];
  return html`
    ${noNode.pods > 0 && html`<${Several} title=${stuck.noNode(noNode.pods)} entries=${noNode} resource=${resource} why=${(each) => each.words || stuck.scheduler} />`}
    ${pods > 0 && html`<${Several} title=${stuck.title(pods)} entries=${waiting} resource=${resource} why=${why} />`}
    ${pods === 0 && waiting.pods > 0 && html`<p class="quiet small">${stuck.fine}</p>`}`;
}

function Several({ title, entries, resource, why }) {
  return html`<details class="map-stuck"><summary>${title}</summary>
    <div class="scroll"><table><thead><tr><th scope="col">${stuck.workload}</th><th scope="col">${stuck.queue}</th><th scope="col" class="number">${stuck.pods}</th>
      <th scope="col" class="number">${stuck.size}</th><th scope="col">${stuck.reason}</th></tr></thead>
    <tbody>${entries.first.map((each, index) => html`<tr key=${index}>
      <td>${each.visible ? html`<${WorkloadLink} namespace=${each.namespace} name=${each.name} /> <span class="quiet small"><bdi>${each.namespace}</bdi></span>` : html`<span class="quiet">${stuck.elsewhere}</span>`}</td>
      <td>${each.queue && html`<${QueueLink} name=${each.queue} title=${each.title} />`}</td><td class="number">${number(each.pods)}</td>
      <td class="number">${each.size ? amount(resource, each.size.value) : ""}</td><td><bdi>${why(each)}</bdi></td></tr>`)}</tbody></table></div>
    ${entries.more > 0 && html`<p class="quiet small">${stuck.more(entries.more)}</p>`}</details>`;
}
