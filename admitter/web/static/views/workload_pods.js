// The pods of a workload: how many are in which state, what their trouble is, and where they run.

import { html } from "/lib/preact.js";
import { Empty, Link, Time } from "/lib/parts.js";
import { words } from "/lib/words.js";

const said = words.workload.pods;
const FEW = 20;
const LOOKS = {
  Ready: "good", Succeeded: "done", Gated: "waits", Starting: "starting", NotReady: "starting", NoScheduler: "waits", Unschedulable: "waits",
  Missing: "waits", Ending: "waits",
};
const look = (state) => LOOKS[state] ?? "bad";

export function Pods({ answer, route, go, me }) {
  const { pods } = answer;
  if (pods === null) return null;
  const total = pods.states.reduce((sum, each) => sum + each.count, 0);
  const all = route.query.pods === "all";
  const shown = all ? pods.pods : pods.pods.slice(0, FEW);
  return html`<section class="pods"><h2>${said.title(total)}</h2>
    ${total === 0 && html`<${Empty}>${answer.state === "Finished" ? said.over : answer.state === "Admitted" ? said.notMade : said.none}<//>`}
    ${pods.words && html`<p class="trouble" dir="auto">${pods.words}</p>`}
    ${total > 0 && html`<${States} states=${pods.states} total=${total} />`}
    ${pods.wanted > 0 && html`<p>${said.ready(pods.ready, pods.wanted)}</p>`}
    ${total > 0 && !pods.named && html`<${Empty}>${said.unnamed}<//>`}
    ${shown.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${said.list}><table>
      <thead><tr><th scope="col">${said.pod}</th><th scope="col">${said.state}</th><th scope="col">${said.node}</th><th scope="col" class="optional">${said.made}</th></tr></thead>
      <tbody>${shown.map((each) => html`<tr key=${each.name}><th scope="row"><bdi>${each.name}</bdi></th>
        <td><span class=${`badge ${look(each.state)}`}>${said.states[each.state]}</span>${each.detail && html`<div class="small quiet" dir="auto">${each.detail}</div>`}</td>
        <td><${Node} pod=${each} namespace=${me.tree ? "" : answer.namespace} /></td>
        <td class="optional"><${Time} at=${each.created} now=${answer.taken} kind="ago" /></td></tr>`)}</tbody></table></div>`}
    ${pods.pods.length > FEW && html`<button type="button" aria-pressed=${String(all)} onClick=${() => go({ query: { pods: all ? "" : "all" } })}>${all ? said.fewer : said.all(pods.pods.length)}</button>`}
    ${pods.more > 0 && all && html`<p class="quiet">${words.workload.more(pods.more)}</p>`}
  </section>`;
}

// The node of a pod, in the map: that of one namespace, or of all.
function Node({ pod, namespace }) {
  if (!pod.node) return said.noNode;
  if (!pod.nodeKey) return html`<bdi>${pod.node}</bdi>`;
  return html`<${Link} path=${["map"]} query=${{ ...(namespace && { namespace }), node: pod.nodeKey }}>${pod.node}<//>`;
}

function States({ states, total }) {
  const summary = states.map(({ state, count }) => `${count} ${said.states[state]}`).join(", ");
  return html`<span class="bar states" role="img" aria-label=${summary}>
      ${states.map(({ state, count }) => html`<span key=${state} class=${`part ${look(state)}`} style=${{ width: `${(100 * count) / total}%` }}></span>`)}</span>
    <ul class="legend">${states.map(({ state, count }) => html`<li key=${state}><span class=${`swatch part ${look(state)}`}></span>${`${count} ${said.states[state]}`}</li>`)}</ul>`;
}
