// The overview: what is wrong first, then numbers, use of capacity, and what stands behind the numbers.

import { html, useEffect, useMemo, useRef } from "/lib/preact.js";
import { href, useAnswer } from "/lib/api.js";
import { coloursTogether, variable } from "/lib/colours.js";
import { number, quantity, span, stepsOf } from "/lib/format.js";
import { Bar, Choice, Command, Empty, Failure, Link, QueueLink, State, Time, Title, WorkloadLink } from "/lib/parts.js";
import { Sparkline, Stacked } from "/lib/plot.js";
import { words } from "/lib/words.js";

const said = words.overview;
const HOURS = ["1", "6", "24"];
const WAITING = ["workloads"];
const FEW = 3; // of what is wrong, so that the numbers are on the first screen too
const NARROW = matchMedia("(max-width: 700px)");
const fewEvictions = () => (NARROW.matches ? 5 : 8);
const chartHeight = () => (NARROW.matches ? 110 : 150);

export default function Overview({ route, go }) {
  const { hours = "6", resource = "", why = "" } = route.query;
  const { answer, error } = useAnswer("/api/overview", { hours, resource, why });
  useJump(route.query.to, answer !== null);
  const colours = useMemo(() => coloursTogether((answer?.flavors ?? []).map((each) => each.chart.series.map(({ queue }) => queue))), [answer]);
  if (!answer) return html`<${Title}>${said.title}<//>${error ? html`<${Failure} error=${error} />` : html`<${State} />`}`;
  if (answer.queues === 0) return html`<${Title}>${said.title}<//><${State} answer=${answer} error=${error} /><${FirstSteps} />`;
  return html`<${Title}>${said.title}<//><${State} answer=${answer} error=${error} />
    <${Wrong} of=${answer} />
    <${Figures} of=${answer} />
    <section aria-labelledby="capacity"><h2 id="capacity" tabindex="-1">${said.capacity}</h2>
      <div class="tools"><span class="quiet" id="hours">${said.hours}</span>
        <${Choice} label=${said.hours} value=${hours} options=${HOURS.map((each) => [each, said.hour(each)])} onChange=${(each) => go({ query: { hours: each === "6" ? "" : each } })} />
        ${answer.resources.length > 1 && html`<label>${said.resource} <select value=${resource} onChange=${(event) => go({ query: { resource: event.target.value } })}>
          <option value="">${said.byFlavor}</option>
          ${answer.resources.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>`}</div>
      ${answer.flavors.length ? html`<div class="flavors">${answer.flavors.map((each) => html`<${Flavor} key=${each.flavor} of=${each} hours=${answer.hours} colours=${colours} />`)}</div>`
        : html`<${Empty}>${said.noUse}<//>`}
      ${answer.moreFlavors > 0 && html`<p><${Link} path=${["quota"]}>${said.moreFlavors(answer.moreFlavors)}<//></p>`}</section>
    <${Oldest} of=${answer} />
    <${Evictions} of=${answer} why=${why} all=${route.query.all === "1"} go=${go} />`;
}

// A number leads to the section behind it, also from another tab: ?to= names the section.
function useJump(to, ready) {
  const last = useRef(null);
  useEffect(() => {
    if (!ready || !to || last.current === to) return;
    last.current = to;
    const place = document.getElementById(to);
    place?.scrollIntoView({ block: "start" });
    place?.focus({ preventScroll: true });
  }, [to, ready]);
}

// The link to a section of this view; one that is named already is gone to again.
function Jump({ to, query = {}, children, ...rest }) {
  const go = () => {
    const place = document.getElementById(to);
    place?.scrollIntoView({ block: "start" });
    place?.focus({ preventScroll: true });
  };
  return html`<a href=${href(["overview"], { ...query, to })} onClick=${go} ...${rest}>${children}</a>`;
}

// A Workload, or that it is one of another namespace.
const Job = ({ of: { namespace, name }, hidden = said.hidden }) => (namespace
  ? html`<${WorkloadLink} namespace=${namespace} name=${name} />` : html`<span class="quiet">${hidden}</span>`);
const Preemptor = ({ of: each }) =>
  html`<${Job} of=${{ namespace: each.forNamespace, name: each.forName }} hidden=${said.hiddenFor} />`;

function Wrong({ of: { trouble, nodes, promises, taken } }) {
  const none = !trouble.total && !nodes.notReady && !promises.total;
  const notReady = (each) => html`<bdi>${each.name}</bdi>${each.since && html` <span class="quiet">${said.notReadySince} ${span(taken - each.since)}</span>`}${each.why && html`: <bdi>${each.why}</bdi>`}`;
  return html`<section aria-labelledby="wrong"><h2 id="wrong" class="unseen">${said.wrong}</h2>
    ${none && html`<p class="fine"><span aria-hidden="true">✓</span> ${nodes.total ? said.fine : said.noNodes}</p>`}
    ${trouble.total > 0 && html`<div class="trouble bad"><h3>${said.queues(trouble.total)}</h3>
      <${Few} of=${trouble.first} total=${trouble.total} path=${["quota"]} item=${(each) => html`<${QueueLink} name=${each.name} title=${each.title} />: <bdi>${each.why}</bdi> <span class="quiet">(${said.blocked(each.waiting)})</span>`} /></div>`}
    ${nodes.notReady > 0 && html`<div class="trouble bad"><h3><${Link} path=${["map"]}>${said.nodes(nodes.notReady)}<//></h3>
      ${nodes.first.length === 0 ? html`<p class="quiet">${said.nodesHidden}</p>` : html`<${Few} of=${nodes.first} total=${nodes.notReady} path=${["map"]} item=${notReady} />`}</div>`}
    ${promises.total > 0 && html`<div class="trouble warn"><h3 id="promises" tabindex="-1">${said.promises(promises.total)}</h3><p class="quiet">${said.promisesAre}</p>
      <${Few} of=${promises.first} total=${promises.total} path=${null} item=${(each) => html`<${Promised} of=${each} now=${taken} />`} /></div>`}</section>`;
}

// The first of what is wrong; more on demand, and where all are.
function Few({ of: entries, total, path, item }) {
  const line = (each, index) => html`<li key=${index}>${item(each)}</li>`;
  const unlisted = total - entries.length;
  return html`<ul>${entries.slice(0, FEW).map(line)}</ul>
    ${total > FEW && html`<details><summary>${said.more(number(total - FEW))}</summary><ul>${entries.slice(FEW).map(line)}
      ${unlisted > 0 && html`<li>${path ? html`<${Link} path=${path}>${said.unlisted(number(unlisted))}<//>` : said.unlisted(number(unlisted))}</li>`}</ul></details>`}`;
}

function Promised({ of: each, now }) {
  const queue = html`<${QueueLink} name=${each.queue} title=${each.title} />`;
  const time = span(now - each.since);
  const text = each.risk === "lent" ? said.lent(time, `${quantity(each.resource, each.lent)} ${each.resource}`, flavorTitle(each), queue) : said[each.risk](time, queue);
  return html`<${Job} of=${each} /> ${text}${each.isFor && html`; <${Preemptor} of=${each} />${said.waitsForIt}`}.`;
}

function Figures({ of: { waiting, running, evictions, nodes, promises, hours } }) {
  const counts = waiting.counts.filter((each) => each !== null);
  return html`<section aria-labelledby="figures"><h2 id="figures" class="unseen">${said.figures}</h2><div class="cards figures">
    <div class="card"><h3>${said.waiting}</h3>
      <p class="figure"><${Link} path=${WAITING} query=${{ group: "waiting", sort: "created" }}>${number(waiting.total)}<//></p>
      <p class="small quiet">${waiting.inLine ? said.inLine(span(waiting.p50), span(waiting.p95)) : said.nothingWaits}</p>
      ${waiting.out.length > 0 && html`<p class="small">${said.out(waiting.total - waiting.inLine)}: <${Reasons} of=${waiting.out} query=${(reason) => ({ group: "waiting", reason })} /></p>`}
      ${counts.length > 1 && html`<${Sparkline} values=${waiting.counts} width="180" height="24" said=${said.waitsLine(hours, number(Math.min(...counts)), number(Math.max(...counts)))} />`}</div>
    <div class="card"><h3>${said.running}</h3>
      <p class="figure"><${Link} path=${WAITING} query=${{ group: "holding" }}>${number(running.total)}<//></p>
      <p class="small quiet"><${Link} path=${["timeline"]}>${said.admitted(number(running.admitted))}<//>${running.admitted > 0 && `, ${said.after(span(running.p50), span(running.p95))}`}</p>
      <p class="small quiet"><${Link} path=${["timeline"]}>${said.ended(number(running.succeeded), number(running.failed))}<//></p></div>
    <div class=${evictions.total ? "card" : "card calm"}><h3>${said.evictions}</h3>
      <p class="figure"><${Jump} to="evictions">${number(evictions.total)}<//></p>
      <p class="small">${evictions.reasons.map((each, index) => html`${index > 0 && ", "}<${Jump} to="evictions" query=${{ why: each.reason }}>${each.count} <bdi>${each.reason}</bdi><//>`)}</p></div>
    <div class="card"><h3>${said.nodesCard}</h3>
      <p class="figure"><${Link} path=${["map"]}>${nodes.total ? said.of(number(nodes.total - nodes.notReady), number(nodes.total)) : "0"}<//></p>
      <p class="small quiet">${nodes.total ? nodes.cordoned > 0 && said.cordoned(number(nodes.cordoned)) : said.nodesUnknown}</p></div>
    <div class="card"><h3>${said.risks}</h3>
      <p class="figure">${promises.total ? html`<${Jump} to="promises">${number(promises.total)}<//>` : "0"}</p>
      <p class="small quiet">${promises.total ? "" : said.noRisk}</p></div></div></section>`;
}

const Reasons = ({ of: reasons, query }) => reasons.map(({ reason, count }, index) =>
  html`${index > 0 && ", "}<${Link} path=${WAITING} query=${query(reason)}>${`${count} ${reason || said.notTried}`}<//>`);

const flavorTitle = ({ flavor, any }) => (any ? said.anyFlavor : flavor);

function Flavor({ of: one, hours, colours }) {
  const { resources, chart } = one;
  const title = flavorTitle(one);
  return html`<article class="card flavor" aria-label=${title}><h3><${Link} path=${["map"]} query=${{ resource: chart.resource }}>${title}<//></h3>
    <dl class="amounts">${resources.map((each) => html`<${Amount} key=${each.resource} of=${each} />`)}</dl>
    <${Chart} flavor=${title} of=${chart} hours=${hours} colours=${colours} /></article>`;
}

function Amount({ of: { resource, used, quota, capacity } }) {
  const written = (value) => quantity(resource, value);
  const text = quota ? said.inUse(written(used), written(quota)) : said.noQuota(written(used));
  const more = capacity === null ? "" : quota > capacity ? said.tooMuch(written(capacity)) : capacity > quota ? said.offers(written(capacity)) : "";
  const kind = used > quota ? "short" : "own";
  return html`<div><dt><bdi>${resource}</bdi></dt>
    <dd><${Bar} parts=${[{ value: Math.min(used, quota), kind: "own" }, { value: used - Math.min(used, quota), kind }]} most=${Math.max(quota, capacity ?? 0)} marks=${[quota]} label=${text} />
      <span class="number">${text}</span>${more && html` <span class=${quota > capacity ? "warned small" : "quiet small"}>${more}</span>`}</dd></div>`;
}

function Chart({ flavor, of: { resource, times, series, rest, restCount, quota }, hours, colours }) {
  if (times.length < 2) return html`<p class="quiet small">${said.beginning}</p>`;
  const parts = series.map((each) => ({ name: each.title, colour: colours.get(each.queue), values: each.values }));
  if (rest) parts.push({ name: said.rest(restCount), colour: "rest", values: rest });
  const format = (value) => quantity(resource, value);
  if (!parts.length) return html`<p class="quiet small">${said.unused(resource)}</p>`;
  return html`<p class="small quiet caption">${said.chart(resource, flavor, hours)}</p>
    <${Stacked} times=${times} series=${parts} limit=${{ name: said.quota, values: quota }} said=${said.chart(resource, flavor, hours)} format=${format} steps=${stepsOf(resource)} height=${chartHeight()} />
    <ul class="legend">${series.map((each) => html`<li key=${each.queue}><${Swatch} colour=${variable(colours.get(each.queue))} /><${QueueLink} name=${each.queue} title=${each.title} /> <span class="quiet">${format(each.values.at(-1) ?? 0)}</span></li>`)}
      ${rest && html`<li><${Swatch} colour="var(--rest)" /><${Link} path=${["quota"]}>${said.rest(restCount)}<//> <span class="quiet">${format(rest.at(-1) ?? 0)}</span></li>`}
      <li><span class="dashes" aria-hidden="true"></span>${said.quota}</li></ul>`;
}

const Swatch = ({ colour }) => html`<span class="swatch" aria-hidden="true" style=${{ background: colour }}></span>`;

function Oldest({ of: { waiting, taken } }) {
  const head = said.columns;
  return html`<section><h2 id="oldest" tabindex="-1">${said.oldest}</h2>
    ${waiting.oldest.length === 0 ? html`<${Empty}>${said.oldestNone}<//>` : html`<div class="scroll" tabindex="0" role="region" aria-labelledby="oldest"><table>
    <thead><tr><th scope="col">${head.name}</th><th scope="col" class="optional">${head.namespace}</th><th scope="col" class="optional">${head.queue}</th>
      <th scope="col" class="number">${head.since}</th><th scope="col" class="number optional">${head.position}</th><th scope="col">${head.reason}</th></tr></thead>
    <tbody>${waiting.oldest.map((each, index) => html`<tr key=${index}><th scope="row" class="named"><${Job} of=${each} /></th>
      <td class="optional">${each.namespace && html`<${Link} path=${["namespace", each.namespace]}>${each.namespace}<//>`}</td>
      <td class="optional"><${QueueLink} name=${each.queue} title=${each.title} /></td>
      <td class="number">${span(taken - each.since)}</td><td class="number optional">${each.position}</td>
      <td class="word"><${Link} path=${WAITING} query=${{ group: "waiting", ...(each.reason ? { reason: each.reason } : {}) }}>${each.reason || said.notTried}<//></td></tr>`)}</tbody></table></div>`}</section>`;
}

function Evictions({ of: { evictions, taken }, why, all, go }) {
  const few = fewEvictions();
  const shown = all ? evictions.last : evictions.last.slice(0, few);
  const head = said.columns;
  const reasons = evictions.reasons.map((each) => each.reason);
  const options = [["", said.allReasons], ...[...new Set([...reasons, ...(why ? [why] : [])])].map((each) => [each, each])];
  return html`<section><h2 id="evictions" tabindex="-1">${said.lastEvictions}</h2>
    ${(reasons.length > 1 || why) && html`<div class="tools"><${Choice} label=${head.why} value=${why} options=${options} onChange=${(each) => go({ query: { why: each } })} /></div>`}
    ${evictions.last.length === 0 ? html`<${Empty}>${said.noEvictions}<//>` : html`<div class="scroll" tabindex="0" role="region" aria-labelledby="evictions"><table>
    <thead><tr><th scope="col">${head.time}</th><th scope="col">${head.name}</th><th scope="col" class="optional">${head.queue}</th>
      <th scope="col">${head.why}</th><th scope="col" class="optional">${head.by}</th></tr></thead>
    <tbody>${shown.map((each, index) => html`<tr key=${index}><td><${Time} at=${each.time} now=${taken} kind="ago" /></td>
      <th scope="row" class="named"><${Job} of=${each} /></th><td class="optional">${each.queue && html`<${QueueLink} name=${each.queue} title=${each.title} />`}</td>
      <td class="word"><bdi>${each.reason}</bdi>${each.rule && html`<span class="small quiet rule optional"><bdi>${each.rule}</bdi></span>`}</td>
      <td class="optional">${each.isFor && html`<${Preemptor} of=${each} />`}</td></tr>`)}</tbody></table></div>
    ${evictions.last.length > few && html`<p><button type="button" aria-expanded=${String(all)} onClick=${() => go({ query: { all: all ? "" : "1" } })}>${all ? said.showFew : said.showAll(evictions.last.length - few)}</button></p>`}
    ${all && evictions.listed > evictions.last.length && html`<p class="quiet small">${said.shownOf(evictions.last.length, evictions.listed)}</p>`}`}</section>`;
}

function FirstSteps() {
  const [write, apply, submit] = said.firstSteps;
  return html`<section aria-labelledby="first"><h2 id="first">${said.first}</h2><p>${said.firstWords}</p>
    <ol class="steps"><li>${write}<${Command}>admitter init -o queues.yaml<//></li>
      <li>${apply}<${Command}>kubectl apply -f queues.yaml<//></li><li>${submit}</li></ol></section>`;
}
