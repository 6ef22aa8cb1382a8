// One node: what it has, and which workloads have pods on it.

import { html, useEffect, useRef } from "/lib/preact.js";
import { useAnswer } from "/lib/api.js";
import { Bar, Command, Empty, Failure, QueueLink, Time, WorkloadLink } from "/lib/parts.js";
import { words } from "/lib/words.js";
import { amount, flavorTitle, resourceTitle, stateWords } from "/views/cluster_map_model.js";

const said = words.cluster.node;

export function NodePanel({ node, resource, own, close }) {
  const { answer, error } = useAnswer("/api/map/node", { key: node, resource, ...(own && { namespace: own }) });
  const heading = useRef(null);
  useEffect(() => {
    heading.current.focus({ preventScroll: innerWidth >= 1100 });
  }, []);
  const name = answer && !answer.named ? words.cluster.hidden(node) : node;
  return html`<section class="map-node" aria-labelledby="map-node">
    <div class="top"><h2 id="map-node" tabindex="-1" ref=${heading}><bdi>${name}</bdi></h2>
      <button type="button" onClick=${close}>${said.close}</button></div>
    <${Failure} error=${error} />
    ${answer && html`<${About} answer=${answer} /><${Has} answer=${answer} own=${own} /><${Workloads} answer=${answer} resource=${resource} own=${own} />
      ${answer.named && !own && html`<h3>${said.commands}</h3><${Command}>${said.describe(node)}<//>`}
      <p class="quiet small">${own ? said.noteOwn : said.note}</p>`}
  </section>`;
}

function About({ answer }) {
  const where = answer.place.map(({ level, place }) => `${words.cluster.levels[level] ?? level} ${place}`);
  const bad = answer.state !== 0;
  return html`<p class="small"><bdi>${[flavorTitle(answer.flavor), ...where].join(", ")}</bdi>
    <br /><span class=${bad ? "badge bad" : "badge good"}>${stateWords(answer.state)}</span>
    ${(answer.state & 1) !== 0 && answer.since > 0 && html` <${Time} at=${answer.since} now=${answer.taken} kind="ago" />`}
    ${answer.words && html`<br /><bdi>${answer.words}</bdi>`}</p>`;
}

function Has({ answer, own }) {
  return html`<h3>${said.has}</h3><table>
    <thead><tr><th scope="col">${said.resource}</th><th scope="col" class="number">${said.used}</th><th scope="col" class="number">${said.total}</th>
      ${!own && html`<th scope="col" class="number">${said.free}</th>`}</tr></thead>
    <tbody>${answer.resources.map((each) => html`<tr key=${each.resource}><th scope="row">${resourceTitle(each.resource)}
      <${Bar} most=${each.total} parts=${[{ value: each.used, kind: "own" }]} label=${words.cluster.used(amount(each.resource, each.used), amount(each.resource, each.total))} /></th>
      <td class="number">${amount(each.resource, each.used)}</td><td class="number">${amount(each.resource, each.total)}</td>
      ${!own && html`<td class="number">${answer.state ? "–" : amount(each.resource, each.free)}</td>`}</tr>`)}</tbody></table>`;
}

function Workloads({ answer, resource, own }) {
  const { first, more } = answer.workloads;
  if (first.length === 0) return html`<h3>${said.workloads}</h3><${Empty}>${own ? said.noneOwn : said.none}<//>`;
  return html`<h3>${said.workloads}</h3><table>
    <thead><tr><th scope="col">${said.workload}</th><th scope="col">${said.queue}</th><th scope="col" class="number">${said.pods}</th><th scope="col" class="number">${said.amount}</th></tr></thead>
    <tbody>${first.map((each) => html`<tr key=${`${each.namespace}/${each.name}/${each.queue}`}>
      <td>${each.visible ? html`<${WorkloadLink} namespace=${each.namespace} name=${each.name} /><br /><span class="quiet small"><bdi>${each.namespace}</bdi></span>` : html`<span class="quiet">${said.hidden(each.pods)}</span>`}</td>
      <td>${each.queue ? html`<${QueueLink} name=${each.queue} title=${each.title} from=${each.namespace || own} />` : words.cluster.other}</td>
      <td class="number">${each.pods}</td>
      <td class="number">${each.words ? amount(resource, each.used) : said.unknown}</td></tr>`)}</tbody></table>
    ${more > 0 && html`<p class="quiet small">${said.more(more)}</p>`}`;
}
