// The cluster map: nodes as cells, filled by use and coloured by queue; what is free, and what fits nowhere.

import { html, useEffect, useMemo, useRef, useState } from "/lib/preact.js";
import { useAnswer } from "/lib/api.js";
import { variable } from "/lib/colours.js";
import { number } from "/lib/format.js";
import { Choice, Empty, State, Title } from "/lib/parts.js";
import { words } from "/lib/words.js";
import { VirtualRows } from "/lib/virtual.js";
import { Cells } from "/views/cluster_map_cells_view.js";
import {
  amount, bare, colouring, filtered, flavorTitle, levelOf, modelOf, nodesOf, ordered, resourceTitle, sections, stateNames, stateWords, sums,
} from "/views/cluster_map_model.js";
import { NodePanel } from "/views/cluster_map_node.js";
import { Spread } from "/views/cluster_map_spread.js";

const said = words.cluster;
const FEW = 4; // resources that are buttons

export default function ClusterMap({ route, go, me }) {
  const { query } = route;
  const own = query.namespace ?? "";
  const asked = { ...(query.resource && { resource: query.resource }), ...(own && { namespace: own }) };
  const refused = !me.tree && !own;
  const { answer, error } = useAnswer(refused ? null : "/api/map", asked);
  const set = (changes) => go({ query: changes });
  if (refused) return html`<${ChooseNamespace} me=${me} set=${set} />`;
  return html`
    ${own ? html`<${Title}>${said.of(own)}<//>` : html`<${Title}>${said.title}<//>`}
    <${State} answer=${answer} error=${error} />
    ${answer && html`<${Loaded} answer=${answer} query=${query} own=${own} set=${set} me=${me} />`}`;
}

function Loaded({ answer, query, own, set, me }) {
  const model = useMemo(() => modelOf(answer), [answer]);
  const colours = useMemo(() => colouring(model, query.queue), [model, query.queue]);
  const level = levelOf(answer.levels, query.by);
  const nodes = useMemo(() => filtered(model.nodes, query), [model, query.flavor, query.queue, query.state]);
  const groups = useMemo(() => sections(nodes, level, answer.levels), [nodes, level]);
  const map = useRef(null);
  const chosen = query.node ?? null;
  const open = (node) => set({ node });
  const close = () => {
    set({ node: "" });
    map.current?.querySelector(".map-cells[tabindex='0'], .rows")?.focus({ preventScroll: true });
  };
  const shared = { answer, model, colours, chosen, open, close, own };
  return html`
    <${Tools} answer=${answer} model=${model} query=${query} level=${level} own=${own} set=${set} me=${me} />
    ${!own && html`<${Spread} answer=${answer} flavor=${query.flavor} />`}
    ${nodes.length === 0
      ? html`<${Nothing} model=${model} own=${own} set=${set} />`
      : html`<${Colours} model=${model} colours=${colours} query=${query} set=${set} nodes=${nodes} all=${model.nodes.length} own=${own} />`}
    <div class=${chosen ? "map open" : "map"} ref=${map} onKeyDown=${(event) => event.key === "Escape" && chosen && close()}>
      <div>${nodes.length > 0 && (query.view === "table"
        ? html`<${NodeTable} ...${shared} nodes=${ordered(nodes, query.order)} />`
        : html`<${Sections} ...${shared} groups=${groups} queue=${query.queue} />`)}</div>
      ${chosen && html`<${NodePanel} key=${chosen} node=${chosen} resource=${answer.resource} own=${own} close=${close} />`}
    </div>
    <${Notes} answer=${answer} model=${model} own=${own} />`;
}

function Tools({ answer, model, query, level, own, set, me }) {
  const choices = answer.resources.map((each) => [each, resourceTitle(each)]);
  const byLevel = [["none", said.tools.noGroup], ...answer.levels.map(({ name }) => [name, said.levels[name] ?? name])];
  const by = level < 0 ? "none" : answer.levels[level].name;
  const table = query.view === "table";
  return html`<div class="tools map-tools">
    ${choices.length > 1 && (choices.length <= FEW
      ? html`<span class="quiet">${said.tools.use}</span> <${Choice} label=${said.tools.use} value=${answer.resource} options=${choices} onChange=${(resource) => set({ resource })} />`
      : html`<${Select} label=${said.tools.use} value=${answer.resource} options=${choices} onChange=${(resource) => set({ resource })} />`)}
    ${answer.levels.length > 0 && !table && html`<${Select} label=${said.tools.group} value=${by} options=${byLevel} onChange=${(chosen) => set({ by: chosen })} />`}
    <${Select} label=${said.tools.flavor} value=${query.flavor ?? ""} all options=${answer.flavors.map((name) => [name, flavorTitle(name)])} onChange=${(flavor) => set({ flavor })} />
    <${Select} label=${said.tools.queue} value=${query.queue ?? ""} all options=${model.queues.filter((name) => name).sort().map((name) => [name, model.titleOf(name)])} onChange=${(queue) => set({ queue })} />
    <${Select} label=${said.tools.state} value=${query.state ?? ""} all options=${stateNames(own !== "").map((name) => [name, said.states[name]])} onChange=${(state) => set({ state })} />
    ${table && html`<${Select} label=${said.tools.order} value=${query.order ?? "place"} options=${Object.entries(said.orders).filter(([name]) => !own || name !== "free")} onChange=${(order) => set({ order })} />`}
    <${Choice} label=${said.tools.show} value=${table ? "table" : "map"} options=${[["map", said.tools.map], ["table", said.tools.table]]} onChange=${(view) => set({ view: view === "map" ? "" : view })} />
    <${OnlyNamespace} own=${own} set=${set} me=${me} />
  </div>`;
}

// A choice of one of many; `all`: or of none of them.
function Select({ label, value, options, onChange, all = false }) {
  return html`<label>${label} <select value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${all && html`<option value="">${said.tools.all}</option>`}
    ${options.map(([name, title]) => html`<option key=${name} value=${name}>${title}</option>`)}</select></label>`;
}

function OnlyNamespace({ own, set, me }) {
  const look = (event) => {
    event.preventDefault();
    set({ namespace: event.target.elements.namespace.value.trim(), node: "" });
  };
  return html`<form class="tools" onSubmit=${look}>
    <label>${said.tools.namespace} <input name="namespace" key=${own} defaultValue=${own} size="12" autocomplete="off" spellcheck="false" /></label>
    <button type="submit">${said.tools.namespaceGo}</button>
    ${own && me.tree && html`<button type="button" onClick=${() => set({ namespace: "", node: "" })}>${said.tools.everything}</button>`}</form>`;
}

function ChooseNamespace({ me, set }) {
  const look = (event) => {
    event.preventDefault();
    set({ namespace: event.target.elements.namespace.value.trim() });
  };
  return html`<${Title}>${said.choose.title}<//>
    <p>${said.choose.why(me.name)}</p>
    <form class="tools" onSubmit=${look}><label>${said.choose.namespace} <input name="namespace" required autocomplete="off" spellcheck="false" /></label>
    <button type="submit">${said.choose.show}</button></form>`;
}

function Nothing({ model, own, set }) {
  if (model.nodes.length === 0) return html`<${Empty}>${own ? said.empty.namespace : said.empty.nodes}<//>`;
  return html`<${Empty}>${said.empty.filter} <button type="button" onClick=${() => set({ flavor: "", queue: "", state: "" })}>${said.empty.filterAll}</button><//>`;
}

// Which colour is which queue, each a button that shows its nodes alone; and which pattern is which state.
function Colours({ model, colours, query, set, nodes, all, own }) {
  const rest = model.queues.filter((name) => name && colours.colour(name) === null).length;
  const swatch = (kind) => html`<span class=${`swatch ${kind}`}></span>`;
  return html`<ul class="map-legend" aria-label=${said.legend}>
    ${colours.first.map((name) => html`<li key=${name}><button type="button" aria-pressed=${String(query.queue === name)}
      onClick=${() => set({ queue: query.queue === name ? "" : name })}><span class="swatch" style=${{ background: variable(colours.colour(name)) }}></span><bdi>${model.titleOf(name)}</bdi></button></li>`)}
    ${rest > 0 && html`<li class="plain">${swatch("map-other")}${said.rest} (${number(rest)})</li>`}
    ${model.uses.has("") && html`<li class="plain">${swatch("map-other")}${said.other}</li>`}
    ${!own && html`<li class="plain">${swatch("map-free")}${said.free}</li>`}
    ${[["notReady", "map-lost"], ["cordoned", "map-cordoned"]].map(([state, kind]) => html`<li key=${state}><button type="button" aria-pressed=${String(query.state === state)}
      onClick=${() => set({ state: query.state === state ? "" : state })}>${swatch(kind)}${said.states[state]}</button></li>`)}
    ${nodes.length < all && html`<li class="plain"><span role="status">${said.filtered(number(nodes.length), number(all))}</span></li>`}
  </ul>`;
}

// All flavors; keys move one mark over their cells.
function Sections({ groups, answer, own, ...rest }) {
  const [active, setActive] = useState(null); // {section, key, moved}; `moved`: by a key
  const drawn = groups.filter((group) => own || group.nodes.some((node) => node.total > 0));
  const without = groups.filter((group) => !drawn.includes(group));
  const current = drawn.some((group) => group.flavor === active?.section) ? active.section : drawn[0]?.flavor;
  const leave = (section, last) => {
    const group = drawn[section];
    if (group) setActive({ section: group.flavor, key: last ? group.nodes.at(-1).key : group.nodes[0].key, moved: true });
  };
  return html`<p class="unseen" id="map-keys">${said.keys}</p>
    ${drawn.map((group, index) => html`<section key=${group.flavor} aria-label=${flavorTitle(group.flavor)}>
      <${Head} group=${group} answer=${answer} own=${own} />
      <${Cells} ...${rest} group=${group} answer=${answer} own=${own} reachable=${group.flavor === current}
        active=${active?.section === group.flavor ? active : null}
        onActive=${(key, moved) => setActive({ section: group.flavor, key, moved })}
        onLeave=${(by, last) => leave(index + by, last)} /></section>`)}
    ${without.length > 0 && html`<p class="quiet">${without.map((group) => said.without(flavorTitle(group.flavor), nodesOf(group.nodes.length), resourceTitle(answer.resource))).join(" ")}</p>`}`;
}

function Head({ group, answer, own }) {
  const { resource } = answer;
  const found = sums(group.nodes);
  const title = html`<h2><bdi>${flavorTitle(group.flavor)}</bdi></h2>`;
  const parts = [nodesOf(group.nodes.length)];
  if (own) parts.push(said.ownUse(amount(resource, found.used)));
  else parts.push(said.used(bare(resource, found.used), amount(resource, found.total)), found.free ? said.freeOf(amount(resource, found.free), bare(resource, found.largest)) : said.noneFree);
  if (found.notReady) parts.push(said.notReady(number(found.notReady)));
  if (found.cordoned) parts.push(said.cordoned(number(found.cordoned)));
  return html`${title}<p class="map-line">${said.section(parts)}</p>`;
}

const ROW = 36; // pixels of a row of the table, and of one with two lines
const TALL_ROW = 54;

// The same as the map: where all else is too wide, a second line has it.
function NodeTable({ nodes, answer, model, own, chosen, open }) {
  const [active, setActive] = useState(0);
  const narrow = useNarrow();
  const { resource } = answer;
  const cell = (text, kind = "") => html`<span role="gridcell" class=${kind} title=${text}><bdi>${text}</bdi></span>`;
  const by = (part) => said.cell.by(model.titleOf(part.queue), bare(resource, part.amount));
  const name = (node) => html`<span role="gridcell" title=${node.name}>
    <button type="button" class="map-open" tabindex="-1" aria-expanded=${String(chosen === node.key)} onClick=${() => open(node.key)}><bdi>${node.name}</bdi></button>
    ${narrow && html`<br /><span class="quiet small"><bdi>${[node.flavor, stateWords(node.state)].filter((each) => each).join(", ")}</bdi></span>`}</span>`;
  const columns = [
    ["node", "minmax(0, 2.4fr)", name],
    ["flavor", "minmax(0, 1fr)", (node) => cell(node.flavor || "–")],
    ["place", "minmax(0, 1fr)", (node) => cell(node.place.filter((each) => each).join(" / ") || "–")],
    ["state", "minmax(0, 1.2fr)", (node) => cell(stateWords(node.state))],
    ["used", narrow ? "84px" : "120px", (node) => cell(said.table.of(bare(resource, node.used), bare(resource, node.total)), "number")],
    ["free", narrow ? "44px" : "80px", (node) => cell(node.state === 0 ? bare(resource, node.free) : "–", "number")],
    ["queues", "minmax(0, 3fr)", (node) => cell(node.parts.map(by).join(", ") || "–")],
  ].filter(([column]) => !(narrow && ["flavor", "place", "state", "queues"].includes(column)) && !(own && column === "free"));
  return html`<${VirtualRows} key=${narrow} label=${said.table.label} count=${nodes.length} height=${narrow ? TALL_ROW : ROW}
    columns=${columns.map(([, wide]) => wide).join(" ")} active=${Math.min(active, nodes.length - 1)}
    onActive=${setActive} onOpen=${(at) => open(nodes[at].key)}
    head=${columns.map(([column]) => html`<span key=${column} role="columnheader" class=${["used", "free"].includes(column) ? "number" : ""}>${said.table[column]}</span>`)}
    row=${(at) => columns.map(([, , make]) => make(nodes[at]))} />`;
}

function useNarrow() {
  const asked = "(max-width: 700px)";
  const [narrow, setNarrow] = useState(matchMedia(asked).matches);
  useEffect(() => {
    const watched = matchMedia(asked);
    const changed = () => setNarrow(watched.matches);
    watched.addEventListener("change", changed);
    return () => watched.removeEventListener("change", changed);
  }, []);
  return narrow;
}

function Notes({ answer, model, own }) {
  const { notes } = said;
  const parts = [own ? notes.own : notes.scope];
  if (model.uses.has("")) parts.push(notes.other);
  if (!answer.named) parts.push(notes.names);
  if (answer.unknown) parts.push(notes.unknown(answer.unknown));
  if (answer.elsewhere) parts.push(notes.elsewhere(answer.elsewhere));
  return html`<p class="quiet small">${parts.join(" ")}</p>`;
}
