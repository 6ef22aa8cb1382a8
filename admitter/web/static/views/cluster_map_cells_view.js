// The nodes of one flavor on a canvas; the mouse and keys move over them.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "/lib/preact.js";
import { onScheme } from "/lib/colours.js";
import { span } from "/lib/format.js";
import { words } from "/lib/words.js";
import { at, beside, draw, layOut, sizeFor } from "/views/cluster_map_cells.js";
import { amount, flavorTitle, nodesOf, podsOf, resourceTitle, stateWords } from "/views/cluster_map_model.js";

const said = words.cluster;
const MOST_PARTS = 8; // queues of a node that are named on it
const TIP = 240; // pixels that a tip needs beside a cell
const WIDEST_TIP = 340;

export function Cells({ group, answer, model, colours, queue, chosen, own, open, active, reachable, onActive, onLeave }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [scheme, setScheme] = useState(0);
  const [hovered, setHovered] = useState(null); // the key of a node
  const shape = sizeFor(model.nodes.length);
  const layout = useMemo(() => (width ? layOut(group.blocks, width, shape) : null), [group, width, shape.size]);
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.floor(box.current.clientWidth));
    measure();
    const watching = new ResizeObserver(measure);
    watching.observe(box.current);
    return () => watching.disconnect();
  }, []);
  useEffect(() => onScheme(() => setScheme((last) => last + 1)), []);
  useLayoutEffect(() => {
    if (layout) draw(canvas.current, layout, width, shape, { colour: colours.colour, dim: (name) => queue !== undefined && name !== queue });
  }, [layout, colours, queue, scheme]);
  useEffect(() => {
    if (active?.moved) box.current.focus({ preventScroll: true });
  }, [active]);

  const places = layout?.places ?? [];
  const index = active ? places.findIndex(({ node }) => node.key === active.key) : -1;
  const shown = (hovered !== null && places.find(({ node }) => node.key === hovered)) || (index >= 0 && places[index]) || null;
  useEffect(() => {
    if (index >= 0 && active.moved) scrollToCell(box.current, places[index], shape.size);
  }, [active, index]);

  const point = (event) => {
    const around = canvas.current.getBoundingClientRect();
    const found = at(places, shape, event.clientX - around.left, event.clientY - around.top);
    return found < 0 ? null : places[found].node.key;
  };
  const keys = (event) => {
    const from = Math.max(index, 0);
    const to = {
      ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: places.length - 1,
      ArrowDown: () => beside(places, from, 1), ArrowUp: () => beside(places, from, -1),
    }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      if (index >= 0) open(places[index].node.key);
    } else if (event.key === "PageDown" || event.key === "PageUp") onLeave(event.key === "PageDown" ? 1 : -1, false);
    else if (to === undefined) return;
    else if (index < 0) onActive(places[0].node.key, true);
    else {
      const wanted = typeof to === "function" ? to() : to;
      if (wanted >= 0 && wanted < places.length) onActive(places[wanted].node.key, true);
      else onLeave(["ArrowRight", "ArrowDown"].includes(event.key) ? 1 : -1, event.key === "ArrowLeft" || event.key === "ArrowUp");
    }
    event.preventDefault();
  };
  const mark = (place, kind) => place && html`<span class=${`map-ring ${kind}`} style=${{ width: `${shape.size}px`, height: `${shape.size}px`, transform: `translate(${place.x}px, ${place.y}px)` }}></span>`;
  return html`<div class="map-cells" ref=${box} role="application" tabindex=${reachable ? 0 : -1} aria-roledescription=${said.role}
      aria-label=${said.canvas(flavorTitle(group.flavor), nodesOf(group.nodes.length))} aria-describedby="map-keys"
      onKeyDown=${keys} onFocus=${() => active?.moved !== true && places.length > 0 && onActive(active?.key ?? places[0].node.key, false)}
      onBlur=${() => active && onActive(active.key, false)}
      onPointerMove=${(event) => event.pointerType !== "touch" && setHovered(point(event))} onPointerLeave=${() => setHovered(null)}
      onClick=${(event) => {
        const key = point(event);
        if (key === null) return;
        onActive(key, false);
        open(key);
      }}>
    <canvas ref=${canvas} aria-hidden="true" style=${{ cursor: hovered === null ? "default" : "pointer" }}></canvas>
    ${mark(places.find(({ node }) => node.key === chosen), "chosen")}
    ${index >= 0 && html`<${Focused} box=${box}>${mark(places[index], "")}<//>`}
    ${shown && (hovered !== null || active?.moved) && html`<${Tip} place=${shown} size=${shape.size} width=${width} answer=${answer} model=${model} own=${own} />`}
    <p class="unseen" role="status">${index >= 0 && active.moved ? lines(places[index].node, answer, model, own).join(". ") : ""}</p>
  </div>`;
}

// What is shown only while the keys move over these cells.
function Focused({ box, children }) {
  return document.activeElement === box.current ? children : null;
}

function scrollToCell(box, place, size) {
  const top = box.getBoundingClientRect().top + place.y;
  if (top < 60) scrollBy(0, top - 60);
  else if (top + size > innerHeight - 20) scrollBy(0, top + size - innerHeight + 20);
}

// What is said of a node, in sentences.
function lines(node, answer, model, own) {
  const { resource } = answer;
  const use = own ? said.cell.own : said.cell.use;
  const where = node.place.map((place, level) => place && `${said.levels[answer.levels[level]?.name] ?? ""} ${place}`).filter((each) => each);
  const found = [node.name, [flavorTitle(node.flavor), ...where].join(", ")];
  if (node.state) {
    const since = node.trouble?.since;
    found.push(node.state & 1 && since ? said.cell.since(stateWords(node.state), span(answer.taken - since)) : stateWords(node.state));
  }
  found.push(node.total > 0 ? use(amount(resource, node.used), amount(resource, node.total)) : said.cell.nothing(resourceTitle(resource)));
  node.parts.slice(0, MOST_PARTS).forEach((part) => found.push(said.cell.by(model.titleOf(part.queue), `${amount(resource, part.amount)}, ${podsOf(part.pods)}`)));
  if (!own && node.state === 0 && node.total > 0) found.push(said.cell.free(amount(resource, node.free)));
  return found;
}

function Tip({ place, size, width, answer, model, own }) {
  const [name, ...rest] = lines(place.node, answer, model, own);
  const style = { top: `${place.y}px` };
  let room = width;
  if (place.x + size + 8 + TIP <= width) {
    style.left = `${place.x + size + 8}px`;
    room = width - place.x - size - 8;
  } else if (place.x >= TIP + 8) {
    style.right = `${width - place.x + 8}px`;
    room = place.x - 8;
  } else Object.assign(style, { left: 0, top: `${place.y + size + 8}px` });
  style.maxWidth = `${Math.min(room, WIDEST_TIP)}px`;
  return html`<div class="map-tip" aria-hidden="true" style=${style}>
    <p class="name"><bdi>${name}</bdi></p>
    ${rest.map((line, index) => html`<p key=${index}><bdi>${line}</bdi></p>`)}
    <p class="quiet">${said.cell.open}</p></div>`;
}
