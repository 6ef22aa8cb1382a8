// The quota tree: a row for each resource in each flavor of each queue and Cohort. All of its state is in the address.

import { html, useEffect, useMemo, useRef, useState } from "/lib/preact.js";
import { ask, useAnswer } from "/lib/api.js";
import { quantity } from "/lib/format.js";
import { Bar, Empty, Legend, Link, State, Title } from "/lib/parts.js";
import { Sparkline } from "/lib/plot.js";
import { VirtualRows } from "/lib/virtual.js";
import { words } from "/lib/words.js";
import { Lending } from "/views/lending.js";

const say = words.quota;
const SPARKS_MS = 60000; // small pictures are of hours: once a minute is often enough
const ROW = 44; // pixels
const NARROW = matchMedia("(max-width: 900px)"); // where what a row says is below its bar
const NARROW_ROW = 80;
const ALL = "*"; // in the address, in place of the names of all Cohorts

const HATCHED = "repeating-linear-gradient(135deg, var(--lent) 0 3px, transparent 3px 6px)";
const LEGEND = [["own", "var(--own)"], ["borrowed", "var(--borrowed)"], ["lent", HATCHED], ["unused", "var(--empty)"]].map(
  ([name, colour]) => ({ name, colour, title: say.legend[name] }));

const most = (use) => Math.max(use.used + use.lent, use.min, use.max ?? 0);
const SCARCEST = "scarcest"; // in the address: one resource of each place
const kindOf = (use) => `${use.flavor} ${use.resource}`;
const part = (use) => use.used / (use.min || use.used || 1);

export default function QuotaTree({ route, go }) {
  const { answer, error } = useAnswer("/api/tree");
  const sparks = useSparks();
  const [active, setActive] = useState(0);
  const narrow = useMatch(NARROW);
  const query = route.query;
  const lines = answer?.lines ?? [];
  const rows = useMemo(() => rowsOf(lines, query), [answer, query.sort, query.find, query.only, query.of, query.closed]);
  const cohorts = useMemo(() => lines.filter((line) => line.kind === "cohort").map((line) => line.name), [answer]);
  const now = rows[Math.min(active, rows.length - 1)];
  const set = (more) => go({ query: more });
  const toggle = (line, open) => set({ closed: closing(query.closed, cohorts, line.name, open) });
  const keys = (event) => {
    const way = { ArrowRight: true, ArrowLeft: false }[event.key];
    if (way === undefined || event.target.getAttribute("role") !== "treegrid" || !now) return;
    if (now.hasBelow && now.open !== way) toggle(now.line, way);
    else if (!way && now.line.parent !== null) setActive(rows.findIndex((row) => row.line.kind === "cohort" && row.line.name === now.line.parent));
    event.preventDefault();
  };
  return html`<${Title}>${say.title}<//>
    <${State} answer=${answer} error=${error}>${answer && say.state(lines.filter((l) => l.kind === "queue").length, waitingIn(lines))}<//>
    <${Tools} lines=${lines} cohorts=${cohorts} query=${query} set=${set} queue=${now?.line.kind === "queue" ? now.line.name : ""} />
    ${query.loans && html`<${Lending} loans=${query.loans} close=${() => set({ loans: "" })} />`}
    ${answer && (rows.length
      ? html`<div class="quota-tree" onKeyDown=${keys}><${VirtualRows} role="treegrid" label=${say.label} count=${rows.length} height=${narrow ? NARROW_ROW : ROW}
          columns="var(--tree-columns)" head=${html`<${Head} />`} active=${Math.min(active, rows.length - 1)} onActive=${setActive}
          attributes=${(index) => attributesOf(rows[index])}
          onOpen=${(index) => open(rows[index], toggle)}
          row=${(index) => html`<${Row} row=${rows[index]} spark=${sparks[rows[index].line.name]} toggle=${toggle} set=${set} loans=${query.loans} />`} /></div>
        <${Legend} entries=${LEGEND} />`
      : html`<${Empty}>${lines.length ? say.noneFound : say.noQueues}<//>`)}`;
}

const open = (row, toggle) => {
  if (row.line.kind === "queue") location.hash = `#/queue/${encodeURIComponent(row.line.name)}`;
  else if (row.hasBelow) toggle(row.line, !row.open);
};

const waitingIn = (lines) => lines.reduce((sum, line) => sum + (line.kind === "queue" ? line.waiting : 0), 0);

function attributesOf(row) {
  return { "aria-level": row.depth + 1, ...(row.hasBelow ? { "aria-expanded": String(row.open) } : {}) };
}

// The names of closed Cohorts in the address, after one was opened or closed.
function closing(text, cohorts, name, opened) {
  const names = closedIn(text, cohorts);
  if (opened) names.delete(name);
  else names.add(name);
  if (names.size && cohorts.every((each) => names.has(each))) return ALL;
  return [...names].map(encodeURIComponent).join(",");
}

function closedIn(text, cohorts) {
  if (text === ALL) return new Set(cohorts);
  return new Set((text ?? "").split(",").filter((each) => each).map(decoded));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// What stands where, in the order that the address says: as a tree, or queues alone.
function rowsOf(lines, query) {
  const { find = "", only = "", closed = "" } = query;
  const sort = Object.hasOwn(say.sorts, query.sort ?? "") ? query.sort : "tree";
  const of = query.of === SCARCEST || lines.some((line) => line.uses.some((use) => kindOf(use) === query.of)) ? query.of : "";
  const wanted = find.trim().toLowerCase();
  const names = closedIn(closed, lines.filter((line) => line.kind === "cohort").map((line) => line.name));
  const parents = new Set(lines.map((line) => line.parent));
  const asTree = sort === "tree" && !wanted && !only;
  let below = Infinity; // deeper than a closed Cohort
  let found = [];
  for (const line of lines) {
    if (asTree) {
      if (line.depth > below) continue;
      below = line.kind === "cohort" && names.has(line.name) ? line.depth : Infinity;
    } else if (!fits(line, wanted, only) || (sort !== "tree" && line.kind !== "queue")) continue;
    found.push(line);
  }
  const uses = (line) => (of === SCARCEST ? scarcest(line.uses) : line.uses.filter((use) => !of || of === kindOf(use)));
  const sums = {
    waiting: (line) => line.waiting,
    share: (line) => Math.max(0, ...uses(line).map(part)),
    borrowed: (line) => Math.max(0, ...uses(line).map((use) => use.borrowed / (use.min || 1))),
    lent: (line) => Math.max(0, ...uses(line).map((use) => use.lent / (use.min || 1))),
    recent: (line) => line.recent,
  };
  if (sums[sort]) found = found.map((line) => [sums[sort](line), line]).sort(([one, a], [other, b]) => other - one || (a.title < b.title ? -1 : 1)).map(([, line]) => line);
  if (sort === "name") found.sort((a, b) => (a.name < b.name ? -1 : 1));
  return found.flatMap((line) => {
    const common = { line, depth: asTree ? line.depth : 0, hasBelow: asTree && line.kind === "cohort" && parents.has(line.name), open: !names.has(line.name) };
    const shown = uses(line);
    if (shown.length) return shown.map((use, index) => ({ ...common, use, first: index === 0 }));
    return of && of !== SCARCEST ? [] : [{ ...common, use: null, first: true }];
  });
}

const scarcest = (uses) => uses.slice(0, 1).map((first) => uses.reduce((found, use) => (part(use) > part(found) ? use : found), first));

function fits(line, wanted, only) {
  if (wanted && !line.title.toLowerCase().includes(wanted)) return false;
  if (only === "waiting") return line.waiting > 0;
  if (only === "borrowing") return line.uses.some((use) => use.borrowed > 0);
  if (only === "lending") return line.uses.some((use) => use.lent > 0);
  return only !== "problems" || line.problem !== "";
}

function Tools({ lines, cohorts, query, set, queue }) {
  const kinds = useMemo(() => [...new Set(lines.flatMap((line) => line.uses.map(kindOf)))].sort(), [lines]);
  const pick = (name) => (event) => set({ [name]: event.target.value });
  const options = (entries, chosen) => entries.map(([value, said]) => html`<option key=${value} value=${value} selected=${value === (chosen ?? "")}>${said}</option>`);
  return html`<div class="tools">
    <label>${say.find} <input type="search" autocomplete="off" spellcheck="false" value=${query.find ?? ""} onInput=${pick("find")} /></label>
    <label>${say.only} <select onChange=${pick("only")}>${options(Object.entries(say.onlys), query.only)}</select></label>
    ${kinds.length > 1 && html`<label>${say.of} <select onChange=${pick("of")}>
      ${options([["", say.all], [SCARCEST, say.scarcest], ...kinds.map((kind) => [kind, say.kind(...kind.split(" ").reverse())])], query.of)}</select></label>`}
    <label>${say.sort} <select onChange=${(event) => set({ sort: event.target.value === "tree" ? "" : event.target.value })}>${options(Object.entries(say.sorts), query.sort ?? "tree")}</select></label>
    ${cohorts.length > 0 && html`<button type="button" onClick=${() => set({ closed: query.closed ? "" : ALL })}>${query.closed ? say.openAll : say.closeAll}</button>`}
    <${Link} path=${["try"]} query=${queue ? { queues: queue } : {}}>${say.try(queue)}<//></div>`;
}

function Head() {
  const heads = [["place", say.place], ["kind", say.resource], ["use", say.use], ["spark optional", say.spark], ["number waiting", say.waiting], ["number optional", say.admitted]];
  return heads.map(([kind, said]) => html`<span role="columnheader" class=${kind} key=${said}>${said}</span>`);
}

function Row({ row, spark, toggle, set, loans }) {
  const { line, use } = row;
  const shown = spark && use && spark.flavor === use.flavor && spark.resource === use.resource;
  return html`
    <span role="gridcell" class=${row.first ? "place" : "place again"} style=${{ paddingLeft: `${row.depth * 18}px` }}>
      ${row.hasBelow && row.first && html`<button type="button" class="toggle" aria-expanded=${String(row.open)} aria-label=${say.below(line.title)} onClick=${() => toggle(line, !row.open)}>${row.open ? "▾" : "▸"}</button>`}
      ${row.first ? html`<${Place} line=${line} />` : html`<span class="unseen">${line.title}</span>`}
      ${row.first && line.problem && html` <span class="badge bad" title=${line.problem}>${say.problem}<span class="unseen">: ${line.problem}</span></span>`}</span>
    <span role="gridcell" class="kind">${use ? html`<bdi>${use.resource}</bdi><small> ${say.in} <bdi>${use.flavor || say.anyFlavor}</bdi></small>` : say.noQuota}</span>
    <span role="gridcell" class="use">${use && html`<${Use} line=${line} use=${use} set=${set} loans=${loans} />`}</span>
    <span role="gridcell" class="spark optional">${shown && html`<${Spark} spark=${spark} name=${line.title} />`}</span>
    <span role="gridcell" class="number waiting">${row.first ? line.waiting : ""}</span>
    <span role="gridcell" class="number optional">${row.first && html`${line.admitted}${line.recent > 0 && html` <small title=${say.recent(line.recent)}>+${line.recent}<span class="unseen"> ${say.recent(line.recent)}</span></small>`}`}</span>`;
}

// The kind of a queue is said where there is room for it.
function Titled({ title }) {
  const [kind, ...name] = title.split(" ");
  return name.length ? html`<span class="wide">${kind} </span>${name.join(" ")}` : title;
}

const Place = ({ line }) => (line.kind === "queue"
  ? html`<${Link} path=${["queue", line.name]} title=${line.title}><${Titled} title=${line.title} /><//>${line.weight !== null && html` <small>${say.weight(line.weight)}</small>`}`
  : html`<bdi class="cohort">${line.title}</bdi>`);

function Use({ line, use, set, loans }) {
  const amounts = Object.fromEntries(["used", "min", "max", "borrowed", "lent"].map((name) => [name, quantity(use.resource, use[name] ?? 0)]));
  const said = say.used(amounts, use.max !== null);
  const parts = [{ value: use.used - use.borrowed, kind: "own" }, { value: use.borrowed, kind: "borrowed" }, { value: use.lent, kind: "lent" }];
  const key = JSON.stringify([line.kind, line.name, use.flavor, use.resource]);
  const ask = (words) => html`<button type="button" class="loan" aria-expanded=${String(key === loans)} onClick=${() => set({ loans: key === loans ? "" : key })}>${words}</button>`;
  return html`<${Bar} parts=${parts} most=${most(use)} marks=${[use.min]} label=${say.bar(amounts, use.max !== null)} />
    <span class="said"><small class="phone"><bdi>${use.resource}</bdi> ${say.in} <bdi>${use.flavor || say.anyFlavor}</bdi>: </small>${said}${use.borrowed > 0 && html`, ${ask(say.borrowed(amounts.borrowed))}`}${use.lent > 0 && html`, ${ask(say.lent(amounts.lent))}`}</span>`;
}

function Spark({ spark, name }) {
  const known = spark.used.filter((each) => each !== null);
  if (known.length < 2) return html`<span class="quiet">${say.noHistory}</span>`;
  const amount = (value) => quantity(spark.resource, value);
  const said = say.sparkSaid(name, spark.resource, amount(Math.min(...known)), amount(Math.max(...known)), Math.round((spark.seconds * spark.used.length) / 3600));
  return html`<${Sparkline} values=${known} most=${spark.quota} said=${said} width=${90} height=${24} />`;
}

function useMatch(media) {
  const [matches, setMatches] = useState(media.matches);
  useEffect(() => {
    const changed = () => setMatches(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [media]);
  return matches;
}

// Small pictures by queue; asked for at once, and then only now and then.
function useSparks() {
  const [found, setFound] = useState({});
  const gone = useRef(false);
  useEffect(() => {
    const look = () => ask("/api/sparks").then((answer) => !gone.current && setFound(answer.queues), () => undefined);
    look();
    const again = setInterval(look, SPARKS_MS);
    return () => {
      gone.current = true;
      clearInterval(again);
    };
  }, []);
  return found;
}
