// My jobs: what runs, waits and has ended in the namespaces of whoever looks, what it used, and the queues open to it.

import { html, useEffect, useMemo, useRef, useState } from "/lib/preact.js";
import { StartBar, axisOf, startWords } from "/lib/axis_of_starts.js";
import { href, useAgain, useAnswer } from "/lib/api.js";
import { ago, inBytes, number, quantity, span } from "/lib/format.js";
import { Why, asksWords, endWords, queueName, workloadHref } from "/lib/listing.js";
import { Command, Empty, Failure, Link, QueueLink, State, Title, queueHref } from "/lib/parts.js";
import { QuotaBars } from "/lib/quota_bars.js";
import { words } from "/lib/words.js";

const said = words.mine;
const SETTLE_MS = 250;
const OTHER_CHARACTERS = /[^A-Za-z0-9_./:@-]/;

export default function Mine({ route, go }) {
  // #/namespace/NAME is the same of one namespace.
  const named = route.path[0] === "namespace" ? route.path[1] ?? "" : route.query.namespace ?? "";
  const find = route.query.find ?? "";
  const asked = { ...(named ? { namespace: named } : {}), ...(find ? { find } : {}) };
  const { answer, error, again } = useAnswer("/api/mine", asked);
  useAgain(answer, answer?.reasoned, again);
  const waits = (answer?.counts.waiting ?? 0) > 0;
  const { answer: starts } = useAnswer(waits ? "/api/mine/starts" : null, named ? { namespace: named } : {});
  const title = named && !named.includes(",") ? said.of(named) : said.title;
  if (!answer || (error && error.status < 500)) {
    return html`<${Title}>${title}<//>${error ? html`<${Failure} error=${error} />` : html`<${State} />`}`;
  }
  const { namespaces, counts } = answer;
  const some = namespaces.shown.length > 0;
  return html`<${Title}>${title}<//>
    <${State} answer=${answer} error=${error}>${some ? said.state(counts.running, counts.waiting) : ""}<//>
    <${Namespaces} namespaces=${namespaces} named=${named} find=${find} go=${go} />
    ${some && html`<${Jobs} answer=${answer} starts=${starts?.starts ?? null} />`}`;
}

function Namespaces({ namespaces, named, find, go }) {
  const [text, setText] = useState(find);
  const settling = useRef(0);
  useEffect(() => () => clearTimeout(settling.current), []);
  const { all, everything, complete, more } = namespaces;
  const search = (event) => {
    setText(event.target.value);
    clearTimeout(settling.current);
    settling.current = setTimeout(() => go({ query: { find: event.target.value.trim() } }), SETTLE_MS);
  };
  if (!everything && !find && all.length === 0) return html`<${Empty}>${complete ? said.none : said.incomplete}<//>`;
  if (!everything && !find && all.length === 1 && !more) return complete ? null : html`<p class="quiet">${said.incomplete}</p>`;
  const chosen = new Set(named ? named.split(",") : []);
  const list = html`<ul class="namespaces">
    ${!everything && html`<li key="*"><a href=${href(["my"])} aria-current=${named ? null : "true"}>${said.all}</a></li>`}
    ${all.map((each) => html`<li key=${each.name}><a href=${href(["my"], { namespace: each.name })} aria-current=${chosen.has(each.name) ? "true" : null}><bdi>${said.counts(each.name, each.running, each.waiting)}</bdi></a></li>`)}</ul>`;
  return html`<section class="choose" aria-label=${said.namespaces}>
    ${everything && !named && html`<p>${said.choose}</p>`}
    ${(all.length > 12 || find || more || everything) && html`<div class="tools"><label>${said.find} <input type="search" value=${text} onInput=${search} autocomplete="off" spellcheck="false" /></label></div>`}
    ${all.length === 0 ? html`<${Empty}>${said.noneFound}<//>` : named && everything && !find ? html`<details><summary>${said.namespaces}</summary>${list}</details>` : list}
    ${more && html`<p class="quiet">${said.moreNamespaces}</p>`}
    ${!complete && html`<p class="quiet">${said.incomplete}</p>`}
  </section>`;
}

function Jobs({ answer, starts }) {
  const { running, waiting, ended, counts, queues, used, taken: now } = answer;
  const several = answer.namespaces.shown.length > 1;
  const names = answer.namespaces.shown.join(",");
  const axis = useMemo(() => starts && axisOf(Object.values(starts), now), [starts, now]);
  const nothing = counts.running + counts.waiting + counts.ended === 0;
  return html`<div class="cards">
      <${Figure} title=${said.cards.running} value=${counts.running} path=${["workloads"]} query=${{ namespace: names, group: "holding" }} />
      <${Figure} title=${said.cards.waiting} value=${counts.waiting} path=${["workloads"]} query=${{ namespace: names, group: "waiting" }} />
      <${Used} title=${said.cards.hour} used=${used.hour} /> <${Used} title=${said.cards.day} used=${used.day} />
    </div>
    ${nothing ? html`<${First} queues=${queues} />` : html`
    <h2>${said.waiting}</h2><${Waiting} rows=${waiting} several=${several} starts=${starts} axis=${axis} now=${now} />
    <${More} shown=${waiting} count=${counts.waiting} names=${names} group="waiting" />
    <h2>${said.running}</h2><${Running} rows=${running} several=${several} now=${now} />
    <${More} shown=${running} count=${counts.running} names=${names} group="holding" />
    <h2>${said.ended}</h2><${Ended} rows=${ended} several=${several} now=${now} />`}
    <h2>${said.queues}</h2><${Queues} queues=${queues} several=${several} />`;
}

const Figure = ({ title, value, path, query }) => html`<div class="card"><h2>${title}</h2><p class="figure"><${Link} path=${path} query=${query}>${number(value)}<//></p></div>`;

const Used = ({ title, used }) => html`<div class="card"><h2>${title}</h2>
  ${used.length === 0 ? html`<p class="figure">${said.nothingUsed}</p>` : html`<ul class="used">${used.map((each) => html`<li key=${each.resource}>${hoursWords(each)}</li>`)}</ul>`}</div>`;

// "12.5 GPU-hours": an amount of a resource for a time.
function hoursWords({ resource, hours }) {
  const amount = quantity(resource, hours);
  const unit = inBytes(resource) && /[GM]i?$/.exec(amount);
  if (unit) return said.hours(said.units.bytes(unit[0]), amount.slice(0, unit.index));
  if (resource === "cpu") return said.hours(said.units.cpu, amount);
  if (/(^|[./-])gpu$/.test(resource)) return said.hours(said.units.gpu, amount);
  return said.hours(said.units.other(resource), amount);
}

const More = ({ shown, count, names, group }) => count > shown.length && html`<p><${Link} path=${["workloads"]} query=${{ namespace: names, group }}>${said.allOf[group](count)}<//></p>`;

// A table that is a list of cards on a phone: each cell knows its head. The roles keep it a table for screen readers.
function Cells({ label, heads, rows, keyOf, cells }) {
  return html`<table class="cells" role="table"><caption class="unseen">${label}</caption>
    <thead role="rowgroup"><tr role="row">${heads.map((head) => html`<th scope="col" role="columnheader" key=${head}>${head}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map((row) => html`<tr role="row" key=${keyOf(row)}>${cells(row).map((cell, index) => html`<td role="cell" key=${heads[index]} data-head=${heads[index]}><div class="cell">${cell}</div></td>`)}</tr>`)}</tbody></table>`;
}

const jobKey = (row) => `${row.namespace}/${row.workload}`;
const jobCell = (row) => html`<a href=${workloadHref(row)}><bdi>${row.name}</bdi></a>`;
const queueCell = (row) => (row.queue ? html`<a href=${queueHref(row.queue, row.namespace)} title=${row.title}><bdi>${queueName(row)}</bdi></a>` : "");
const namespaceCell = (row) => html`<bdi>${row.namespace}</bdi>`;

function Waiting({ rows, several, starts, axis, now }) {
  const { columns } = said;
  if (rows.length === 0) return html`<${Empty}>${said.noneWaits}<//>`;
  const heads = [columns.job, ...(several ? [columns.namespace] : []), columns.queue, columns.asks, columns.why, columns.start, columns.commands];
  return html`<${Cells} label=${said.waiting} heads=${heads} rows=${rows} keyOf=${jobKey} cells=${(row) => [
    jobCell(row), ...(several ? [namespaceCell(row)] : []),
    html`${queueCell(row)}<span class="quiet small">${row.position ? said.inLine(row.position) : said.noPlace}</span>`,
    asksWords(row.asks), html`<${Why} row=${row} now=${now} />`, html`<${Start} row=${row} starts=${starts} axis=${axis} now=${now} />`,
    html`<${Commands} row=${row} />`]} />`;
}

function Start({ row, starts, axis, now }) {
  if (!row.position) return html`<span class="quiet">${words.starts.none}</span>`;
  if (starts === null) return html`<span class="quiet">${words.reading}</span>`;
  const start = starts[`${row.namespace}/${row.name}`];
  if (!start) return html`<span class="quiet">${words.starts.notEstimated}</span>`;
  return html`<span class="start"><span class="start-words">${startWords(start, now)}</span><${StartBar} start=${start} axis=${axis} /></span>`;
}

function Running({ rows, several, now }) {
  const { columns } = said;
  if (rows.length === 0) return html`<${Empty}>${said.noneRuns}<//>`;
  const heads = [columns.job, ...(several ? [columns.namespace] : []), columns.queue, columns.holds, columns.since, columns.ends, columns.commands];
  return html`<${Cells} label=${said.running} heads=${heads} rows=${rows} keyOf=${jobKey} cells=${(row) => [
    html`${jobCell(row)}${row.reason ? html`<div class="small"><${Why} row=${row} now=${now} /></div>` : ""}`, ...(several ? [namespaceCell(row)] : []), queueCell(row),
    asksWords(row.asks), span(now - row.since), endWords(row, now), html`<${Commands} row=${row} />`]} />`;
}

function Ended({ rows, several, now }) {
  const { columns } = said;
  if (rows.length === 0) return html`<${Empty}>${said.noneEnded}<//>`;
  const heads = [columns.job, ...(several ? [columns.namespace] : []), columns.queue, columns.how, columns.ran, columns.when];
  return html`<${Cells} label=${said.ended} heads=${heads} rows=${rows} keyOf=${(row) => `${jobKey(row)}/${row.admitted}`} cells=${(row) => [
    jobCell(row), ...(several ? [namespaceCell(row)] : []), queueCell(row),
    html`<span class=${`badge ${{ succeeded: "good", failed: "bad", evicted: "warn", outOfTime: "bad" }[row.how] ?? ""}`}>${said.endings[row.how] ?? row.how}</span> ${row.how === "succeeded" ? "" : row.reason}`,
    span(row.ended - row.admitted), ago(row.ended, now)]} />`;
}

// Names of a cluster are safe in a shell; any other is quoted.
const quoted = (text) => (text !== "" && !OTHER_CHARACTERS.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

function Commands({ row }) {
  const [open, setOpen] = useState(false);
  const where = `-n ${quoted(row.namespace)}`;
  const object = quoted(row.object);
  const described = row.object.startsWith("workload/") ? `workloads.admitter.dev ${quoted(row.workload)}` : row.object.includes("/") ? object : `job/${object}`;
  return html`<details onToggle=${(event) => setOpen(event.target.open)}><summary aria-label=${said.commandsOf(row.name)}>${said.commands}</summary>
    ${open && html`<${Command}>${`admitter explain ${object} ${where}`}<//><${Command}>${`kubectl describe ${described} ${where}`}<//>`}</details>`;
}

function Queues({ queues, several }) {
  if (queues.length === 0) return html`<${Empty}>${said.noQueue}<//>`;
  return html`<div class="open-queues">${queues.map((each) => html`<section class="card" key=${`${each.namespace}/${each.name}`}>
    <h3>${several ? html`<bdi>${each.namespace}</bdi> / ` : ""}<bdi>${each.name}</bdi></h3>
    <p>${each.told ? html`<${QueueLink} name=${each.queue} title=${each.title} from=${each.namespace} />` : html`<bdi>${each.title}</bdi>`}
      <span class="quiet"> ${said.own(each.running, each.waiting)}</span></p>
    ${each.problem && html`<p class="warning">${each.problem}</p>`}
    ${each.told ? html`<${QuotaBars} uses=${each.uses} />` : html`<p class="quiet">${said.untold}</p>`}
    <p class="quiet small">${said.submit}</p><${Command}>${`admitter.dev/queue-name: ${each.name}`}<//></section>`)}</div>`;
}

// How to submit a first Job.
function First({ queues }) {
  const queue = queues.find((each) => !each.problem) ?? queues[0];
  if (!queue) return null;
  const manifest = `kubectl create -n ${quoted(queue.namespace)} -f - <<'END'
apiVersion: batch/v1
kind: Job
metadata:
  generateName: first-
  labels:
    admitter.dev/queue-name: ${queue.name}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        command: [sleep, "60"]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
END`;
  return html`<div class="empty"><p>${said.noneAtAll}</p><${Command}>${manifest}<//></div>`;
}
