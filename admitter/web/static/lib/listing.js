// The list of Workloads with its filters: of a queue, or of all queues. What is filtered and sorted is in the address.

import { html, useEffect, useMemo, useRef, useState } from "/lib/preact.js";
import { AxisHead, StartBar, axisOf, startWords } from "/lib/axis_of_starts.js";
import { href } from "/lib/api.js";
import { ago, number, quantity, span, within } from "/lib/format.js";
import { Empty, Failure, queueHref } from "/lib/parts.js";
import { VirtualRows } from "/lib/virtual.js";
import { keyOf, useWindows } from "/lib/windows.js";
import { words } from "/lib/words.js";

const said = words.list;
const FILTERS = ["text", "state", "reason", "namespace", "user", "priority", "evicted"];
const SETTLE_MS = 250;
const TALL = { wide: 78, narrow: 168, low: 56 };

// The name of a queue alone, as its page and its links have it; that of an elastic quota with its kind.
export const queueName = (row) => row.title.replace(/^ClusterQueue /, "");
export const workloadHref = (row) => href(["workload", row.namespace, row.name]);
export const asksWords = (asks) => asks.map((each) => `${quantity(each.resource, each.value)} ${each.resource}`).join(", ") || said.nothing;

// What the columns show. `sort`: the order that their head chooses; `first`: backwards at first.
const COLUMNS = {
  position: { width: "56px", sort: "position", cell: (row) => row.position ?? "" },
  name: {
    width: "minmax(140px, 1.5fr)", sort: "name",
    cell: (row) => html`<a href=${workloadHref(row)} tabindex="-1"><bdi>${row.name}</bdi></a>`,
  },
  namespace: { width: "minmax(90px, .9fr)", sort: "namespace", cell: (row) => html`<bdi>${row.namespace}</bdi>` },
  user: { width: "minmax(90px, .8fr)", sort: "user", cell: (row) => html`<bdi>${row.user}</bdi>` },
  queue: {
    width: "minmax(100px, 1fr)", sort: "queue",
    cell: (row) => row.queue && html`<a href=${queueHref(row.queue, row.namespace)} tabindex="-1" title=${row.title}><bdi>${queueName(row)}</bdi></a>`,
  },
  asks: { width: "minmax(110px, 1.1fr)", cell: (row) => html`<span title=${asksWords(row.asks)}>${asksWords(row.asks)}</span>` },
  priority: { width: "76px", sort: "priority", first: true, number: true, cell: (row) => number(row.priority) },
  state: { width: "90px", sort: "state", cell: (row) => row.state },
  created: { width: "100px", sort: "created", number: true, cell: (row, { now }) => span(now - row.created) },
  evicted: { width: "110px", sort: "evicted", first: true, cell: (row, { now }) => (row.evicted === null ? "" : ago(row.evicted, now)) },
  since: { width: "110px", sort: "since", number: true, cell: (row, { now }) => (row.since === null ? "" : span(now - row.since)) },
  ends: { width: "minmax(130px, 1fr)", sort: "ends", cell: (row, { now }) => endWords(row, now) },
  start: { width: "minmax(200px, 1.6fr)", cell: (row, look) => html`<${Start} row=${row} ...${look} />` },
};

export function endWords(row, now) {
  if (row.since === null) return "";
  return row.ends === null ? said.endUnknown : row.ends <= now ? said.endSoon : within(row.ends, now);
}

function Start({ row, starts, axis, now }) {
  if (starts === null) return html`<span class="quiet">${words.reading}</span>`;
  const start = starts[`${row.namespace}/${row.name}`];
  if (!start) return html`<span class="quiet">${words.starts.notEstimated}</span>`;
  const text = startWords(start, now);
  return html`<span class="start" title=${text}><span class="start-words">${text}</span><${StartBar} start=${start} axis=${axis} /></span>`;
}

// `fixed` goes with every question; `order`: by which it is sorted at first; `low`: its rows have no sentence, or a
// short one; `starts`: by namespace and name, null while they are worked out, undefined where
// none are shown; `choices`: what can be filtered by; `empty`: what to say if there is nothing at all.
export function Listing({ route, go, fixed = {}, order = "position", low = false, columns, starts, choices, label, empty, others = "" }) {
  const { query } = route;
  const asked = { ...fixed };
  for (const name of [...FILTERS, "sort", "queue"]) if (query[name] && !(name in fixed)) asked[name] = query[name];
  asked.sort ??= order;
  const list = useWindows("/api/workloads", asked);
  const narrow = useNarrow();
  const filtered = FILTERS.some((name) => query[name]);
  const shown = columns.filter((name) => name !== "user" || choices?.users.length);
  const now = list.answer?.taken ?? 0;
  const axis = useMemo(() => starts && axisOf(Object.values(starts), now), [starts, now]);
  const look = { now, starts, axis };
  const height = narrow ? TALL.narrow : low ? TALL.low : TALL.wide;
  return html`<div class="listing">
    <${Filters} query=${query} go=${go} choices=${choices} columns=${shown} filtered=${filtered} narrow=${narrow} order=${order} />
    <p class="state" role="status" data-taken=${list.answer?.taken ?? null}>${list.answer ? said.total(list.answer.workloads, filtered) : words.reading}${list.answer && !list.answer.complete ? ` ${said.incomplete}` : ""}
      ${others && !filtered ? ` ${others}` : ""}</p>
    <${Failure} error=${list.error} />
    ${list.answer && list.total === 0 ? html`<${Empty}>${filtered ? said.noneFits : empty}<//>` : list.answer && html`
      <${Rows} key=${JSON.stringify(asked)} list=${list} columns=${shown} look=${look} label=${label} narrow=${narrow} height=${height} order=${order} query=${query} go=${go} />`}
  </div>`;
}

function Rows({ list, columns, look, label, narrow, height, order, query, go }) {
  const [active, setActive] = useState(Math.min(Number(query.row) || 0, Math.max(0, list.total - 1)));
  const key = useRef(null); // of the active row: it stays active where it moves to
  const settling = useRef(0);
  useEffect(() => () => clearTimeout(settling.current), []);
  useEffect(() => {
    const row = list.rowAt(active);
    if (key.current !== null && keyOf(row) !== key.current) {
      const moved = list.indexOf(key.current);
      if (moved >= 0) return setActive(moved);
    }
    key.current = keyOf(row);
    if (active >= list.total) setActive(Math.max(0, list.total - 1));
    return undefined;
  }, [list.version]);
  const choose = (index) => {
    setActive(index);
    key.current = keyOf(list.rowAt(index));
    clearTimeout(settling.current);
    settling.current = setTimeout(() => go({ query: { row: index ? String(index) : "" } }), SETTLE_MS);
  };
  const open = (index) => {
    const row = list.rowAt(index);
    if (row?.visible) location.hash = workloadHref(row);
  };
  const row = (index) => {
    const found = list.rowAt(index);
    if (narrow) return narrowCells(found, columns, look);
    return found?.visible ? wideCells(found, columns, look) : emptyCells(found, columns);
  };
  const widths = narrow ? "minmax(0, 1fr) auto" : columns.map((name) => COLUMNS[name].width).join(" ");
  return html`<${VirtualRows} label=${label} count=${list.total} height=${height} columns=${widths}
    head=${narrow ? narrowHead() : wideHead(columns, query.sort ?? order, order, go, look)} row=${row} onWindow=${list.see} active=${active} onActive=${choose} onOpen=${open}
    onType=${(text) => list.find(text, text.length > 1 ? active : active + 1)} />`;
}

function wideHead(columns, sort, usual, go, look) {
  return columns.map((name) => {
    const { sort: by, first, number: right } = COLUMNS[name];
    const on = by && sort.replace(/^-/, "") === by;
    const order = !on ? "none" : sort.startsWith("-") ? "descending" : "ascending";
    const next = on ? (sort.startsWith("-") ? by : `-${by}`) : first ? `-${by}` : by;
    return html`<span role="columnheader" key=${name} class=${right ? "number" : ""} aria-sort=${by ? order : null}>
      ${by ? html`<button type="button" class="sort" tabindex="-1" onClick=${() => go({ query: { sort: next === usual ? "" : next, row: "" } })}>
        ${said.columns[name]}${on ? html`<span aria-hidden="true">${order === "ascending" ? " ▲" : " ▼"}</span>` : ""}</button>` : said.columns[name]}
      ${name === "start" && look.axis ? html`<${AxisHead} axis=${look.axis} />` : ""}</span>`;
  });
}

const narrowHead = () => html`<span role="columnheader">${said.columns.name}</span><span role="columnheader" class="number">${said.columns.position}</span>`;

function wideCells(row, columns, look) {
  return html`${columns.map((name) => html`<span role="gridcell" key=${name} class=${COLUMNS[name].number || name === "position" ? "number" : ""}>${COLUMNS[name].cell(row, look)}</span>`)}
    <span role="gridcell" class="why"><${Why} row=${row} now=${look.now} /></span>`;
}

// A row that is not here yet, or of a namespace that may not be seen: its place, and no more.
function emptyCells(row, columns) {
  const hidden = row && !row.visible;
  return columns.map((name) => html`<span role="gridcell" key=${name} class=${name === "position" ? "number" : "quiet"}>
    ${name === "position" ? row?.position ?? "" : name === "name" ? (hidden ? hiddenWords(row) : "…") : ""}</span>`);
}

const hiddenWords = (row) => (row.until > row.position ? said.hiddenMany(row.until - row.position + 1, row.until) : said.hidden);

function narrowCells(row, columns, look) {
  if (!row?.visible) {
    return html`<span role="gridcell" class="quiet">${row ? hiddenWords(row) : "…"}</span><span role="gridcell" class="number">${row?.position ?? ""}</span>`;
  }
  const less = columns.filter((name) => !["position", "name", "start"].includes(name) && (name !== "user" || row.user));
  return html`<span role="gridcell" class="narrow-name">${COLUMNS.name.cell(row)}</span>
    <span role="gridcell" class="number">${row.position ?? ""}</span>
    <span role="gridcell" class="narrow-line quiet small">${less.map((name, index) => html`<span key=${name}>${index ? " · " : ""}${narrowOf(name, row, look)}</span>`)}</span>
    <span role="gridcell" class="why"><${Why} row=${row} now=${look.now} /></span>
    ${columns.includes("start") && html`<span role="gridcell" class="narrow-line small">${COLUMNS.start.cell(row, look)}</span>`}`;
}

function narrowOf(name, row, look) {
  const cell = COLUMNS[name].cell(row, look);
  return ["priority", "created", "since", "ends", "evicted"].includes(name) && cell !== "" ? html`${said.columns[name]}: ${cell}` : cell;
}

// Why a Workload waits or has to stop: the sentence, and the word that commands and documents use.
export function Why({ row, now }) {
  if (row.ready) return html`<span class="quiet">${said.ready}</span>`;
  if (!row.reason && !row.message) return html`<span class="quiet">${row.holds ? said.holds(row.flavors, span(now - row.since), endWords(row, now)) : said.noReason}</span>`;
  return html`${row.reason && html`<span class=${`badge ${said.bad.has(row.reason) ? "bad" : ""}`}>${row.reason}</span> `}<span class="sentence" title=${row.message}><bdi>${row.message}</bdi></span>`;
}

function Filters({ query, go, choices, columns, filtered, narrow, order }) {
  const [text, setText] = useState(query.text ?? "");
  const [priority, setPriority] = useState(query.priority ?? "");
  const settling = useRef(0);
  useEffect(() => () => clearTimeout(settling.current), []);
  useEffect(() => setText(query.text ?? ""), [query.text]);
  useEffect(() => setPriority(query.priority ?? ""), [query.priority]);
  const set = (name, value) => go({ query: { [name]: value, row: "" } });
  const later = (name, value) => {
    clearTimeout(settling.current);
    settling.current = setTimeout(() => set(name, value), SETTLE_MS);
  };
  const select = (name, of) => html`<span class="field"><label for=${`by-${name}`}>${said.filters[name]}</label><select id=${`by-${name}`} value=${query[name] ?? ""} disabled=${!query[name] && !of?.length}
    title=${name === "user" && !of?.length ? said.noUsers : ""} onChange=${(event) => set(name, event.target.value)}>
    <option value="">${said.any}</option>
    ${options(of ?? [], query[name]).map(([value, count]) => html`<option key=${value} value=${value}>${said.choice(value, count)}</option>`)}</select></span>`;
  const clear = () => go({ query: Object.fromEntries([...FILTERS, "row"].map((name) => [name, ""])) });
  const orders = columns.filter((name) => COLUMNS[name].sort).flatMap((name) => [COLUMNS[name].sort, `-${COLUMNS[name].sort}`].map((by) => [by, name]));
  const form = html`<form class="tools" role="search" aria-label=${said.filters.label} onSubmit=${(event) => event.preventDefault()}>
    <span class="field"><label for="by-text">${said.filters.text}</label><input id="by-text" type="search" size="22" autocomplete="off" spellcheck="false" value=${text} placeholder=${said.filters.textHint}
      onInput=${(event) => { setText(event.target.value); later("text", event.target.value.trim()); }} /></span>
    ${select("state", choices?.states)} ${select("reason", choices?.reasons)} ${select("namespace", choices?.namespaces)} ${select("user", choices?.users)}
    <span class="field"><label for="by-priority">${said.filters.priority}</label><input id="by-priority" size="6" inputmode="text" autocomplete="off" value=${priority} placeholder="5..9" title=${said.filters.priorityHint}
      pattern="-?[0-9]+|-?[0-9]+\\.\\.(-?[0-9]+)?|\\.\\.-?[0-9]+"
      onInput=${(event) => { setPriority(event.target.value); if (event.target.validity.valid) later("priority", event.target.value.trim()); }} /></span>
    ${query.evicted && html`<span class="badge warn">${said.filters.evicted(span(Number(query.evicted) || 0))}</span>`}
    <span class="field"><label for="by-order">${said.filters.sort}</label><select id="by-order" value=${query.sort ?? order} onChange=${(event) => set("sort", event.target.value === order ? "" : event.target.value)}>
      ${orders.map(([by, name]) => html`<option key=${by} value=${by}>${said.sorted(said.columns[name], by.startsWith("-"))}</option>`)}</select></span>
    ${filtered && html`<button type="button" onClick=${clear}>${said.clear}</button>`}
  </form>`;
  return narrow ? html`<details class="filters" open=${filtered}><summary>${said.filters.summary}</summary>${form}</details>` : form;
}

// The choices, and what is chosen though nothing has it any more.
const options = (of, chosen) => (!chosen || of.some(([value]) => String(value) === chosen) ? of : [[chosen, 0], ...of]);

function useNarrow() {
  const media = useMemo(() => matchMedia("(max-width: 700px)"), []);
  const [narrow, setNarrow] = useState(media.matches);
  useEffect(() => {
    const changed = () => setNarrow(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  return narrow;
}
