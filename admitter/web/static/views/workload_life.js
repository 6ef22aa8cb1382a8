// What has happened to a workload, and what is due: in order, with the time between.

import { html } from "/lib/preact.js";
import { span, within } from "/lib/format.js";
import { Empty, Time } from "/lib/parts.js";
import { Other } from "/views/workload_other.js";
import { words } from "/lib/words.js";

const said = words.workload.life;

export function Life({ answer }) {
  const { timeline, taken } = answer;
  const past = timeline.filter((each) => !each.coming);
  const coming = timeline.filter((each) => each.coming);
  return html`<section class="life"><h2>${said.title}</h2>
    ${timeline.length === 0 && html`<${Empty}>${said.none}<//>`}
    <ol>
      ${past.map((each, index) => html`<${Happening} key=${`${each.what}/${each.at}`} each=${each} now=${taken} after=${index > 0 ? each.at - past[index - 1].at : null} />`)}
      ${past.length > 0 && !["Finished", "Gone"].includes(answer.state) && html`<li class="now" key="now"><span class="between">${said.since(span(taken - past.at(-1).at))}</span><strong>${said.now}</strong></li>`}
      ${coming.map((each) => html`<${Happening} key=${`${each.what}/${each.at}`} each=${each} now=${taken} after=${null} />`)}
    </ol></section>`;
}

function Happening({ each, now, after }) {
  const look = each.coming ? "coming" : ["Evicted", "EvictionPending", "Deleted"].includes(each.what) ? "bad" : "";
  return html`<li class=${look}>
    ${after !== null && after >= 1 && html`<span class="between">${said.later(span(after))}</span>`}
    <p><strong>${said.what[each.what] ?? each.what}</strong>${each.reason && !said.plain.includes(each.reason) && html` <code class="reason">${each.reason}</code>`}
      ${" "}<span class="when"><${Time} at=${each.at} now=${now} />${each.coming ? ` (${within(each.at, now)})` : ""}</span></p>
    ${each.preemptor && html`<p class="for">${said.for} <${Other} other=${each.preemptor} />${each.preemptor.queue && html` ${said.in} <bdi>${each.preemptor.queue}</bdi>`}${each.preemptor.rule && html`: <span dir="auto">${each.preemptor.rule}</span>`}</p>`}
    ${each.message && !each.preemptor && html`<p class="quiet message" dir="auto">${each.message}</p>`}
  </li>`;
}
