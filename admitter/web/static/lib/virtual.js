// Rows of one height, of which only those in view are in the page: 20,000 cost as much as 40.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "/lib/preact.js";

const BEYOND = 8; // rows above and below that are kept ready
const TYPING_MS = 700; // letters that follow sooner are of the same name
let grids = 0;

// A grid of `count` rows. `row(index)` makes the cells of one, `head` those of the head; `onWindow(from, count)` tells
// which rows are needed; `active` is the row that keys move, and `onActive(index)` tells where they move it. `onType(text)`
// finds the row whose name begins with what is typed: a promise of its index, or null. A tree is one by its `role`, and
// by what `attributes(index)` says of each row.
export function VirtualRows({
  label, count, height = 36, columns, head, row, onWindow, active = 0, onActive, onOpen, onType, role = "grid",
  attributes = () => undefined,
}) {
  const box = useRef(null);
  const id = useMemo(() => `grid-${(grids += 1)}`, []);
  const typed = useRef({ text: "", at: 0 });
  const [view, setView] = useState({ top: 0, rows: 20 });
  const from = Math.max(0, Math.min(count - 1, Math.floor(view.top / height)) - BEYOND);
  const to = Math.min(count, from + view.rows + 2 * BEYOND);
  const measure = () => setView({ top: box.current.scrollTop, rows: Math.ceil(box.current.clientHeight / height) });
  useLayoutEffect(() => {
    if (active > 0) box.current.scrollTop = Math.max(0, active * height - box.current.clientHeight / 2);
    measure();
    const watching = new ResizeObserver(measure);
    watching.observe(box.current);
    return () => watching.disconnect();
  }, []);
  useEffect(() => onWindow?.(from, to - from), [from, to]);
  const move = (index) => {
    const wanted = Math.max(0, Math.min(count - 1, index));
    const top = wanted * height;
    if (top < box.current.scrollTop) box.current.scrollTop = top;
    else if (top + 2 * height > box.current.scrollTop + box.current.clientHeight) box.current.scrollTop = top + 2 * height - box.current.clientHeight;
    onActive?.(wanted);
  };
  const type = async (event) => {
    const now = event.timeStamp;
    const goesOn = now - typed.current.at < TYPING_MS;
    typed.current = { text: goesOn ? typed.current.text + event.key : event.key, at: now };
    const text = typed.current.text;
    const found = await onType(text);
    if (found !== null && text === typed.current.text) move(found);
  };
  const keys = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: view.rows - 1, PageUp: 1 - view.rows }[event.key];
    if (by !== undefined) move(active + by);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(count - 1);
    else if (event.key === "Enter" && event.target === box.current) onOpen?.(active);
    else if (onType && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && event.target === box.current && event.key !== " ") type(event);
    else return;
    event.preventDefault();
  };
  const rows = [];
  for (let index = from; index < to; index += 1) {
    rows.push(html`<div key=${index} id=${`${id}-${index}`} role="row" aria-rowindex=${index + 2} aria-selected=${String(index === active)} ...${attributes(index)}
      class=${index === active ? "row active" : "row"} style=${{ height: `${height}px`, gridTemplateColumns: columns, transform: `translateY(${index * height}px)` }}
      onClick=${() => onActive?.(index)}>${row(index)}</div>`);
  }
  return html`<div class="rows" role=${role} aria-label=${label} aria-rowcount=${count + 1} tabindex="0" ref=${box}
    aria-activedescendant=${active >= from && active < to ? `${id}-${active}` : null} onScroll=${measure} onKeyDown=${keys}>
    <div role="rowgroup" class="rows-head"><div role="row" aria-rowindex="1" class="row head" style=${{ gridTemplateColumns: columns }}>${head}</div></div>
    <div role="rowgroup" class="rows-body" style=${{ height: `${count * height}px` }}>${rows}</div></div>`;
}
