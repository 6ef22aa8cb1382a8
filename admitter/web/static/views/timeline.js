// The timeline: when workloads held quota, and when the next ones are expected to; by queue or by namespace.

import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "/lib/preact.js";
import { href, useAnswer } from "/lib/api.js";
import { Axis, panned, within, zoomed } from "/lib/axis.js";
import { onScheme } from "/lib/colours.js";
import { near } from "/lib/format.js";
import { Choice, Empty, Link, QueueLink, State, Title } from "/lib/parts.js";
import { words } from "/lib/words.js";
import { Card, Legend, Rests, Rows, sentence } from "/views/timeline_parts.js";
import { LANES, Picture, decoded } from "/views/timeline_picture.js";

const SHORTEST = 60; // seconds
const STEP = 1.5; // a step of zooming
const SETTLED_MS = 200; // after the last movement the server is asked and the address says the range
const WORKING_MS = 1500;
const ASIDE = 0.5; // what is asked for beside the range, as a part of it
const said = words.timeline;

export default function Timeline({ route, go, me }) {
  const { query } = route;
  const by = query.by === "namespace" ? "namespace" : "queue";
  const high = query.high === "size" ? "size" : "uniform";
  const [width, setWidth] = useState(0);
  const [moving, setMoving] = useState(null); // a range that the address does not say yet
  const last = useRef(null);
  const bounds = last.current?.bounds;
  const written = query.from && query.to ? [Number(query.from), Number(query.to)] : null;
  const [rows, setRows] = useState({ first: 0, count: 60 });

  const asked = {
    by, high, first: Math.max(0, rows.first - rows.count), rows: 3 * rows.count, find: query.find ?? "", only: query.only ?? "",
    quota: query.quota ?? "", ...(query.namespace ? { namespace: query.namespace } : {}),
    ...beside(written, bounds, width),
  };
  const { answer, error, again } = useAnswer(width ? "/api/timeline" : null, asked);
  if (answer) last.current = answer;
  const known = last.current;
  useEffect(() => {
    if (!answer?.forecast || (answer.forecast.state !== "working" && !answer.forecast.working)) return undefined;
    const later = setTimeout(again, WORKING_MS);
    return () => clearTimeout(later);
  }, [answer]);

  const range = moving ?? written ?? (known ? [known.from, known.to] : null);
  const move = useCallback((to) => setMoving(to && within(to, { ...last.current.bounds })), []);
  useEffect(() => {
    if (moving === null) return undefined;
    const settled = setTimeout(() => {
      go({ query: { from: Math.round(moving[0]), to: Math.round(moving[1]) } });
      setMoving(null);
    }, SETTLED_MS);
    return () => clearTimeout(settled);
  }, [moving]);
  const bars = useMemo(() => (known ? decoded(known) : []), [known]);
  const asTable = query.as === "table";

  return html`<${Title}>${said.title}<//>
    <${State} answer=${known} error=${error}>${known && said.said(known.all.bars, known.all.groups, by)}<//>
    <${Tools} ...${{ by, high, query, go, range, move, known, me }} />
    <${Sized} onWidth=${setWidth}>
      ${known && !error && html`${known.lanes === 0 ? html`<${Nothing} query=${query} known=${known} />`
        : asTable ? html`<${Rows} bars=${bars} range=${range} now=${known.taken} />`
          : html`<${Lanes} key=${`${by} ${high}`} ...${{ known, bars, range, width, move, setRows, query, go }} />`}
        <${Legend} known=${known} />
        <${Rests} forecast=${known.forecast} now=${known.taken} />`}
    <//>
    ${known && !asTable && html`<${Printed} ...${{ bars, range }} now=${known.taken} />`}`;
}

// The question for a range, and for as much on both sides of it that moving it a little shows no gap.
function beside(range, bounds, width) {
  const pixels = Math.max(100, Math.round(width / 100) * 100);
  if (range === null) return { width: pixels };
  const more = (range[1] - range[0]) * ASIDE;
  let [from, to] = [range[0] - more, range[1] + more];
  if (bounds) [from, to] = [Math.max(from, Math.min(bounds.from, range[0])), Math.min(to, Math.max(bounds.to, range[1]))];
  return { from: Math.round(from), to: Math.round(to), width: Math.round((pixels * (to - from)) / (range[1] - range[0])) };
}

function Sized({ onWidth, children }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const watching = new ResizeObserver(() => onWidth(box.current.clientWidth));
    watching.observe(box.current);
    onWidth(box.current.clientWidth);
    return () => watching.disconnect();
  }, []);
  return html`<div ref=${box}>${children}</div>`;
}

function Tools({ by, high, query, go, range, move, known, me }) {
  const zoom = (factor) => move(zoomed(range, factor, anchor(range, known.taken), limits(known)));
  const step = (part) => move(panned(range, (range[1] - range[0]) * part, known.bounds));
  const resource = known?.resource ?? "cpu";
  const set = (changed) => go({ query: { ...changed, lane: "" } });
  return html`<div class="tools timeline-tools">
    <${Choice} label=${said.by} value=${by} options=${[["queue", said.byQueue], ["namespace", said.byNamespace]]} onChange=${(key) => set({ by: key === "queue" ? "" : key, only: "", find: "" })} />
    <${Choice} label=${said.high} value=${high} options=${[["uniform", said.uniform], ["size", said.size(resource)]]} onChange=${(key) => set({ high: key === "uniform" ? "" : key })} />
    <${Choice} label=${said.shown} value=${query.as === "table" ? "table" : ""} options=${[["", said.picture], ["table", said.table]]} onChange=${(key) => go({ query: { as: key } })} />
    <label><span class="unseen">${said.find[by]}</span><input type="search" placeholder=${said.find[by]} value=${query.find ?? ""} autocomplete="off" spellcheck="false" size="16" onInput=${(event) => set({ find: event.target.value })} /></label>
    ${by === "queue" && me?.tree && html`<label><input type="checkbox" checked=${query.quota === "1"} onChange=${(event) => set({ quota: event.target.checked ? "1" : "" })} /> ${said.quota}</label>`}
    <span class="timeline-moves" role="group" aria-label=${said.time}>
      <button type="button" aria-label=${said.zoomIn} title=${said.zoomIn} disabled=${!known} onClick=${() => zoom(1 / STEP)}>+</button>
      <button type="button" aria-label=${said.zoomOut} title=${said.zoomOut} disabled=${!known} onClick=${() => zoom(STEP)}>−</button>
      <button type="button" aria-label=${said.earlier} title=${said.earlier} disabled=${!known} onClick=${() => step(-0.5)}>←</button>
      <button type="button" aria-label=${said.later} title=${said.later} disabled=${!known} onClick=${() => step(0.5)}>→</button>
      <button type="button" disabled=${!known} onClick=${() => move(atNow(range, known))}>${said.toNow}</button>
      ${query.from && html`<button type="button" onClick=${() => { move(null); go({ query: { from: "", to: "" } }); }}>${said.usual}</button>`}
    </span>
    ${query.only && html`<span>${said.only("")}<bdi>${query.only}</bdi> <button type="button" onClick=${() => set({ only: "" })}>${said.all}</button></span>`}
  </div>`;
}

const limits = (known) => ({ ...known.bounds, shortest: SHORTEST });
// Where zooming by keys or buttons holds on: now if it is in view, else the middle.
const anchor = ([from, to], now) => (now > from && now < to ? now : (from + to) / 2);
// The same length of time, with now at two thirds.
function atNow([from, to], known) {
  const long = to - from;
  return within([known.taken - (2 * long) / 3, known.taken + long / 3], known.bounds);
}

function Nothing({ query, known }) {
  const filtered = query.find || query.only;
  const whole = known.to - known.from >= known.bounds.to - known.bounds.from - 1;
  return html`<${Empty}>${filtered ? said.empty.filter : whole ? said.empty.never : said.empty.range}<//>`;
}

// On paper there is the table too.
function Printed({ bars, range, now }) {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const [before, after] = [() => setPrinting(true), () => setPrinting(false)];
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    return () => {
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", after);
    };
  }, []);
  return printing && html`<div class="timeline-printed"><${Rows} bars=${bars} range=${range} now=${now} /></div>`;
}

// The picture: a canvas that stays while its lanes scroll below it, with heads, a line of time, and a card.
function Lanes({ known, bars, range, width: outer, move, setRows, query, go }) {
  const scroller = useRef(null);
  const canvas = useRef(null);
  const picture = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [top, setTop] = useState(0);
  const [hovered, setHovered] = useState(null);
  const [selected, setSelected] = useState(null); // the key of a bar
  const [spoken, setSpoken] = useState("");
  const [, again] = useState(0);
  const lane = LANES[known.high];
  const chosen = bars.find((bar) => bar.key === selected) ?? null;
  const users = useMemo(() => new Map(bars.filter((bar) => bar.namespace).map((bar) => [bar.queue, bar.namespace])), [bars]);
  const forecast = known.forecast;
  const shown = {
    bars, groups: known.groups, lane, range, now: known.taken, reached: forecast.state === "there" ? forecast.reached : null,
    top, ...size, selected, hovered, head: known.head * lane, strip: known.strip * lane, others: known.others ?? {}, use: known.use ?? {},
  };
  const latest = useRef(shown);
  latest.current = shown;

  useLayoutEffect(() => {
    picture.current = new Picture(canvas.current);
    const measure = () => setSize({ width: scroller.current.clientWidth, height: scroller.current.clientHeight });
    const watching = new ResizeObserver(measure);
    watching.observe(scroller.current);
    measure();
    scroller.current.scrollTop = Number(query.lane ?? 0) * lane;
    const unheard = onScheme(() => { picture.current.forget(); again((count) => count + 1); });
    return () => { watching.disconnect(); unheard(); };
  }, []);
  useLayoutEffect(() => {
    if (size.width > 0) picture.current.draw(shown);
  });

  // Lanes that are in view are asked for; the address says the first.
  useEffect(() => {
    if (size.height === 0) return undefined;
    const first = Math.floor(top / lane);
    const count = Math.ceil(size.height / lane) + 1;
    const settled = setTimeout(() => {
      setRows((before) => (Math.abs(before.first - first) < count / 2 && before.count === count ? before : { first, count }));
      if (Number(query.lane ?? 0) !== first) go({ query: { lane: first || "" } });
    }, SETTLED_MS / 2);
    return () => clearTimeout(settled);
  }, [top, size.height]);

  const zoomAt = (factor, time) => move(zoomed(range, factor, time, limits(known)));
  const seconds = (range[1] - range[0]) / Math.max(1, size.width);
  const place = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  useEffect(() => {
    const wheel = (event) => {
      const { range: now, width } = latest.current;
      event.preventDefault();
      if (event.shiftKey) scroller.current.scrollTop += event.deltaY || event.deltaX;
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(panned(now, (event.deltaX * (now[1] - now[0])) / width, known.bounds));
      else move(zoomed(now, Math.exp(Math.max(-100, Math.min(100, event.deltaY)) / 250), now[0] + (place(event).x * (now[1] - now[0])) / width, limits(known)));
    };
    const on = canvas.current;
    on.addEventListener("wheel", wheel, { passive: false });
    return () => on.removeEventListener("wheel", wheel);
  }, [known]);

  const drags = useDrag({ latest, move, bounds: limits(known), scroller, place, onTap: (at) => choose(picture.current.hit(at.x, at.y, latest.current)) });
  const choose = (bar) => {
    setSelected(bar?.key ?? null);
    setSpoken(bar ? sentence(bar, known.taken) : "");
    if (bar) reveal(bar);
  };
  const reveal = (bar) => {
    const y = bar.lane * lane;
    if (y < top || y + bar.high * lane > top + size.height) scroller.current.scrollTop = Math.max(0, y - size.height / 2);
    const ends = bar.to ?? known.taken;
    if (ends < range[0] || bar.from > range[1]) move(panned(range, bar.from - (range[0] + range[1]) / 2, known.bounds));
  };
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys({ event, chosen, bars, range, known, size, top, lane, scroller, move, zoomAt, choose, seconds });
    if (act === null) return;
    event.preventDefault();
    act();
  };
  const about = hovered ?? chosen;
  const range_ = said.range(near(range[0], known.taken), near(range[1], known.taken));
  return html`<div class="timeline-picture">
    <div class="timeline-axis" style=${{ width: `${size.width}px` }}><${Axis} from=${range[0]} to=${range[1]} width=${size.width} now=${known.taken} /></div>
    <div class="timeline-scroll" style=${{ "--content": `${known.lanes * lane + 2}px` }} ref=${scroller} onScroll=${(event) => setTop(event.target.scrollTop)}>
      <canvas ref=${canvas} style=${{ width: `${size.width}px`, height: `${size.height}px` }} tabindex="0" role="application" aria-roledescription=${said.application}
        aria-label=${said.describe(said.said(known.all.bars, known.all.groups, known.by), range_)} aria-describedby="timeline-keys"
        onKeyDown=${onKeyDown} ...${drags}
        onMouseMove=${(event) => setHovered(picture.current.hit(place(event).x, place(event).y, latest.current))} onMouseLeave=${() => setHovered(null)}></canvas>
      <div class="timeline-lanes" style=${{ height: `${known.lanes * lane}px`, marginTop: `${-size.height}px` }}>
        ${known.groups.map((group) => html`<${Head} key=${group.name} from=${query.namespace || users.get(group.name)} ...${{ group, known, lane, range, query, go }} />`)}
      </div>
    </div>
    ${about && html`<${Card} bar=${about} box=${picture.current.box(about, shown)} width=${outer} height=${size.height} now=${known.taken} hovers=${about !== chosen} onClose=${() => choose(null)} />`}
    <p class="unseen" role="status">${spoken}</p>
    <details class="small"><summary>${said.help}</summary><p id="timeline-keys">${said.keys}</p></details>
  </div>`;
}

// The name of a group above its lanes.
function Head({ group, from, known, lane, range, query, go }) {
  const hasNow = [range, [known.from, known.to]].every(([from, to]) => from <= known.taken && known.taken <= to);
  const others = known.others?.[group.name];
  const use = known.use?.[group.name];
  return html`<div class="timeline-head" style=${{ top: `${group.first * lane}px`, height: `${Math.max(16, known.head * lane)}px` }}>
    ${known.by === "queue" ? html`<${QueueLink} name=${group.name} title=${group.title} from=${from} />` : html`<${Link} path=${["namespace", group.name]}>${group.name}<//>`}
    ${use && html`<span class="quiet">${said.hasUse(hasNow ? current(use.points, known.taken) : null, use.min, use.max)}</span>`}
    ${others && hasNow && html`<span class="quiet">${said.others(others.now)}</span>`}
    ${!query.only && known.all.groups > 1 && html`<button type="button" onClick=${() => go({ query: { only: group.name, lane: "" } })} aria-label=${said.only(group.name)}>⤢</button>`}
  </div>`;
}

// What a step line says of a moment.
function current(points, now) {
  return points.filter(([time]) => time <= now).at(-1)?.[1] ?? 0;
}

// What a key does; null: nothing.
function keys({ event, chosen, bars, range, known, size, top, lane, scroller, move, zoomAt, choose, seconds }) {
  const pan = (part) => () => move(panned(range, seconds * size.width * part, known.bounds));
  const scroll = (pixels) => () => { scroller.current.scrollTop = top + pixels; };
  const { key, shiftKey } = event;
  const hold = chosen ? Math.min(Math.max(chosen.from, range[0]), range[1]) : anchor(range, known.taken);
  if (key === "+" || key === "=") return () => zoomAt(1 / STEP, hold);
  if (key === "-" || key === "_") return () => zoomAt(STEP, hold);
  if (key === "Home") return () => move(atNow(range, known));
  if (key === "PageUp") return scroll(-size.height);
  if (key === "PageDown") return scroll(size.height);
  if (key === "Escape" && chosen) return () => choose(null);
  if (key === "Enter" && chosen) return chosen.joined > 1 ? () => zoomAt(1 / (STEP * STEP), hold) : () => { location.hash = href(["workload", chosen.namespace, chosen.name]); };
  if (key === "Enter") return () => choose(nearest(bars, (range[0] + range[1]) / 2, (top + size.height / 2) / lane));
  if (chosen && !shiftKey && key.startsWith("Arrow")) return () => choose(neighbour(bars, chosen, key, range));
  const pans = { ArrowLeft: pan(-0.125), ArrowRight: pan(0.125), ArrowUp: scroll(-3 * lane), ArrowDown: scroll(3 * lane) };
  return pans[key] ?? null;
}

function nearest(bars, time, lane) {
  const away = (bar) => Math.abs(bar.lane - lane) * 1e6 + Math.max(bar.from - time, time - (bar.to ?? time), 0);
  return bars.reduce((best, bar) => (best === null || away(bar) < away(best) ? bar : best), null);
}

// The bar beside a bar: before or after it in its lane, or the nearest in another lane.
function neighbour(bars, chosen, key, range) {
  const time = Math.min(Math.max(chosen.from, range[0]), range[1]);
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const later = key === "ArrowRight";
    const there = bars.filter((bar) => bar.lane === chosen.lane && (later ? bar.from > chosen.from : bar.from < chosen.from));
    return (later ? there[0] : there.at(-1)) ?? chosen;
  }
  const down = key === "ArrowDown";
  const there = bars.filter((bar) => (down ? bar.lane > chosen.lane : bar.lane < chosen.lane));
  const next = down ? there[0]?.lane : there.at(-1)?.lane;
  return next === undefined ? chosen : nearest(there.filter((bar) => bar.lane === next), time, next);
}

// Dragging moves in time and over lanes, two fingers zoom, and a press without movement is a tap.
function useDrag({ latest, move, bounds, scroller, place, onTap }) {
  const pointers = useRef(new Map());
  const moved = useRef(0);
  const start = useRef(null);
  const begin = () => {
    const { range } = latest.current;
    const points = [...pointers.current.values()];
    start.current = { range, top: scroller.current.scrollTop, points };
  };
  return {
    onPointerDown: (event) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      pointers.current.set(event.pointerId, place(event));
      moved.current = 0;
      begin();
    },
    onPointerMove: (event) => {
      if (!pointers.current.has(event.pointerId)) return;
      pointers.current.set(event.pointerId, place(event));
      const { width } = latest.current;
      const { range, top, points } = start.current;
      const now = [...pointers.current.values()];
      const per = (range[1] - range[0]) / width;
      if (now.length > 1 && points.length > 1) {
        const apart = (each) => Math.max(10, Math.abs(each[0].x - each[1].x));
        const middle = range[0] + ((points[0].x + points[1].x) / 2) * per;
        moved.current = 100;
        move(zoomed(range, apart(points) / apart(now), middle, bounds));
        return;
      }
      const [dx, dy] = [now[0].x - points[0].x, now[0].y - points[0].y];
      moved.current = Math.max(moved.current, Math.abs(dx) + Math.abs(dy));
      if (moved.current < 4) return;
      move(panned(range, -dx * per, bounds));
      if (event.pointerType === "mouse") scroller.current.scrollTop = top - dy;
    },
    onPointerUp: (event) => {
      if (pointers.current.delete(event.pointerId) && moved.current < 4) onTap(place(event));
      if (pointers.current.size) begin();
    },
    onPointerCancel: (event) => pointers.current.delete(event.pointerId),
  };
}
