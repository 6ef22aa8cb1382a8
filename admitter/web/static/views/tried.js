// What a tried change would do, and how it is written.

import { html, useEffect, useRef, useState } from "/lib/preact.js";
import { near, quantity, within } from "/lib/format.js";
import { Choice, Command, QueueLink, WorkloadLink } from "/lib/parts.js";
import { words } from "/lib/words.js";

const say = words.try;
const EFFECTS = ["evicted", "never", "blocked", "admitted", "waits"]; // the worst first
const BAD = new Set(["evicted", "never", "blocked", "over", "later", "waits"]);

export function Difference({ difference, taken }) {
  const { atOnce, over, sooner, later } = difference;
  const counts = [
    ["admitted", atOnce.admitted.count], ["evicted", atOnce.evicted.count], ["never", atOnce.never.count], ["blocked", atOnce.blocked.count],
    ["over", over.length], ["sooner", sooner.count], ["later", later.count], ...(atOnce.waits.count ? [["waits", atOnce.waits.count]] : []),
  ];
  return html`
    <ul class="counts">${counts.map(([name, count]) => html`<li key=${name} class=${count && BAD.has(name) ? "bad" : ""}>
      <b>${count}</b> ${say.counts[name]}</li>`)}</ul>
    ${difference.errors.map((each) => html`<p class="error" key=${each}>${each}</p>`)}
    ${over.length > 0 && html`<${Over} over=${over} />`}
    ${difference.queues.length > 0 && html`<${Queues} queues=${difference.queues} />`}
    ${EFFECTS.filter((each) => atOnce[each].count > 0).map((each) => html`<${Effects} key=${each} name=${each} found=${atOnce[each]} />`)}
    ${[["later", later], ["sooner", sooner]].filter(([, found]) => found.count > 0).map(([name, found]) => html`<${Starts} key=${name} name=${name} found=${found} taken=${taken} />`)}
    ${difference.startsUntil !== null && html`<p class="quiet small">${say.until(within(difference.startsUntil, taken))}</p>`}
    ${difference.unprovenWords > 0 && sooner.count + later.count > 0 && html`<p class="quiet small">${say.unproven(difference.unprovenWords)}</p>`}`;
}

// `numbers`: so many of the last columns are of numbers.
function Section({ title, heads, rows, numbers = 0, after = "" }) {
  return html`<h3>${title}</h3>${rows.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${title}><table><caption class="unseen">${title}</caption>
    <thead><tr>${heads.map((head, index) => html`<th scope="col" key=${head} class=${index >= heads.length - numbers ? "number" : ""}>${head}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>`}
    ${after && html`<p class="quiet small">${after}</p>`}`;
}

const rest = (found) => [
  found.count - found.hidden - found.rows.length > 0 ? say.more(found.count - found.hidden - found.rows.length) : "",
  found.hidden ? say.hidden(found.hidden) : "",
].filter((each) => each).join(" ");

function Effects({ name, found }) {
  const rows = found.rows.map((row) => html`<tr key=${`${row.namespace}/${row.name}`}><td><bdi>${row.namespace}</bdi></td>
    <td><${WorkloadLink} namespace=${row.namespace} name=${row.name} /></td><td><bdi>${row.why}</bdi></td></tr>`);
  return html`<${Section} title=${say.effects[name](found.count)} heads=${[say.namespace, say.name, say.why]} rows=${rows} after=${rest(found)} />`;
}

function Starts({ name, found, taken }) {
  const start = (at) => (at === null ? say.unknownStart : near(at, taken));
  const rows = found.rows.map((row) => html`<tr key=${`${row.namespace}/${row.name}`}><td><bdi>${row.namespace}</bdi></td>
    <td><${WorkloadLink} namespace=${row.namespace} name=${row.name} /></td><td class="number">${start(row.before)}</td><td class="number">${start(row.after)}</td>
    <td class="number">${row.by ?? ""}</td></tr>`);
  return html`<${Section} title=${say.effects[name](found.count)} heads=${[say.namespace, say.name, say.before, say.after, say.by]} numbers=${3} rows=${rows} after=${rest(found)} />`;
}

function Over({ over }) {
  const rows = over.map((each) => html`<tr key=${JSON.stringify(each)}><td><bdi>${each.where}</bdi></td><td><bdi>${each.resource}</bdi>${each.flavor && html` ${words.quota.in} <bdi>${each.flavor}</bdi>`}</td>
    <td class="number">${quantity(each.resource, each.used.value)}</td><td class="number">${quantity(each.resource, each.allowed.value)}</td></tr>`);
  return html`<${Section} title=${say.overTitle(over.length)} heads=${[say.where, say.resource, say.used, say.allowed]} numbers=${2} rows=${rows} after=${say.overMeans} />`;
}

function Queues({ queues }) {
  const rows = queues.map((each) => html`<tr key=${each.queue}><td><${QueueLink} name=${each.queue} title=${each.title} /></td>
    <td class="number">${say.fromTo(each.admitted.before, each.admitted.after)}</td><td class="number">${say.fromTo(each.waiting.before, each.waiting.after)}</td></tr>`);
  return html`<${Section} title=${say.queues} heads=${[say.queue, say.holding, say.waiting]} numbers=${2} rows=${rows} />`;
}

// The change as a user would make it elsewhere.
export function Written({ answer }) {
  const [kind, setKind] = useState("patch");
  const texts = { patch: answer.patch, manifest: answer.manifest, commands: answer.commands.join("\n") };
  return html`<h3>${say.written}</h3><p class="quiet small">${say.writtenNote}</p>
    <${Choice} label=${say.written} value=${kind} options=${Object.entries(say.kinds)} onChange=${setKind} />
    <${Copyable} text=${texts[kind]} label=${say.kinds[kind]} />
    <p class="quiet small">${say.sameBy}</p><${Command}>admitter what-if -f change.yaml<//>`;
}

function Copyable({ text, label }) {
  const [copied, setCopied] = useState(false);
  const end = useRef(0);
  useEffect(() => {
    setCopied(false);
    return () => clearTimeout(end.current);
  }, [text]);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    end.current = setTimeout(() => setCopied(false), 2000);
  };
  return html`<div class="copyable"><pre tabindex="0" role="region" aria-label=${label}>${text}</pre>
    <button type="button" onClick=${copy}>${copied ? words.copy.done : say.copyAs(label)}</button><span class="unseen" role="status">${copied ? words.copy.done : ""}</span></div>`;
}
