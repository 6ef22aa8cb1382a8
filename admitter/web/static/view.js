// Draws what the server says. Elements are kept and changed in place, so that focus, selection and scroll stay.

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; text is never read as HTML.
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((each) => each !== null && each !== undefined));
  return made;
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Give an element the children of a list, by their keys; each is redrawn only if its item has changed.
// The order tells equal keys apart: rows of hidden Workloads have equal keys.
export function sync(parent, items, keyOf, draw) {
  const times = new Map();
  const wanted = new Map(items.map((item) => {
    const key = keyOf(item);
    times.set(key, (times.get(key) ?? 0) + 1);
    return [`${key} ${times.get(key)}`, item];
  }));
  const known = new Map();
  for (const each of [...parent.children]) {
    if (wanted.has(each.dataset.key)) known.set(each.dataset.key, each);
    else each.remove(); // before others are placed: what is moved loses its focus
  }
  let before = parent.firstElementChild;
  for (const [key, item] of wanted) {
    const shows = JSON.stringify(item);
    let element = known.get(key);
    if (element === undefined || element.dataset.shows !== shows) {
      const made = draw(item);
      made.dataset.key = key;
      made.dataset.shows = shows;
      if (element !== undefined) {
        const focused = element.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
        if (element === before) before = made; // it is in its place: moving it would take its focus
        element.replaceWith(made);
        if (focused !== undefined) made.querySelector(`[data-focus="${focused}"]`)?.focus();
      }
      element = made;
    }
    if (element === before) before = before.nextElementSibling;
    else parent.insertBefore(element, before);
  }
}

export const queueLink = (name) => `#/queue/${encodeURIComponent(name)}`;
export const workloadLink = (namespace, name) =>
  `#/workload/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

// Use against min and max: what is its own, what is borrowed, and a mark where its own ends.
export function bar(use) {
  const most = Math.max(use.used, use.min, use.max ?? 0) || 1;
  const at = (amount) => (100 * amount) / most;
  const picture = drawn("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  picture.append(drawn("rect", { class: "ground", width: 100, height: 10 }));
  picture.append(drawn("rect", { class: "own", width: at(use.used - use.borrowed), height: 10 }));
  picture.append(drawn("rect", { class: "borrowed", x: at(use.used - use.borrowed), width: at(use.borrowed), height: 10 }));
  if (use.min > 0 && use.min < most) picture.append(drawn("line", { class: "mark", x1: at(use.min), x2: at(use.min), y1: 0, y2: 10 }));
  return picture;
}

export function useWords(use) {
  const words = [`${use.words.used} of ${use.words.min}`];
  if (use.max !== null) words.push(`at most ${use.words.max}`);
  if (use.borrowed > 0) words.push(`${use.words.borrowed} borrowed`);
  if (use.lent > 0) words.push(`${use.words.lent} lent`);
  return words.join(", ");
}

function uses(line) {
  return line.uses.map((use) =>
    make("div", { class: "use-row" },
      make("span", { class: "what" }, `${use.resource} in ${use.flavor}`),
      bar(use), make("span", {}, useWords(use))));
}

// A row of the tree.
export function place(line, toggle, linked = true) {
  const name = line.kind === "queue" && linked
    ? make("a", { href: queueLink(line.name), "data-focus": "name" }, line.title)
    : make("strong", {}, line.title);
  const indent = make("span", { class: "indent" });
  indent.style.width = `${line.depth * 20}px`;
  const button = toggle && line.parentOf
    ? make("button", { type: "button", class: "toggle", "data-focus": "toggle", "aria-expanded": String(!line.closed),
        "aria-label": `What is below ${line.title}`, onclick: () => toggle(line) }, line.closed ? "▸" : "▾")
    : make("span", { class: "indent toggle" });
  return make("tr", {},
    make("td", { class: "place" }, indent, button, name,
      line.problem ? make("div", { class: "problem" }, `does not work: ${line.problem}`) : null),
    make("td", { class: "use" }, ...uses(line)),
    make("td", { class: "number" }, String(line.waiting)),
    make("td", { class: "number" }, String(line.admitted)),
    make("td", { class: "number optional" }, String(line.recent)));
}

export function placesTable(caption) {
  const body = make("tbody");
  const table = make("table", {},
    make("caption", { class: "unseen" }, caption),
    make("thead", {}, make("tr", {},
      make("th", { scope: "col" }, "Queue"), make("th", { scope: "col" }, "Use of its own quota"),
      make("th", { scope: "col", class: "number" }, "Waiting"), make("th", { scope: "col", class: "number" }, "Admitted"),
      make("th", { scope: "col", class: "number optional" }, "Admitted a minute"))), body);
  return { table: make("div", { class: "scroll" }, table), body };
}

// A row of Workloads; `start` is when it is expected to start, in words, where that is shown.
export function workloadRow(row, start) {
  const cells = [make("td", { class: "number narrow" }, row.position ? String(row.position) : "")];
  if (row.visible) {
    cells.push(make("td", {}, make("a", { href: workloadLink(row.namespace, row.name), "data-focus": "name" }, row.name)),
      make("td", {}, row.namespace), make("td", { class: "number optional" }, String(row.priority)));
  } else {
    cells.push(make("td", { class: "quiet" }, "another namespace's"), make("td", {}, ""), make("td", { class: "optional" }, ""));
  }
  cells.push(make("td", {}, row.state), make("td", {}, row.reason ?? ""));
  if (start !== undefined) cells.push(make("td", {}, start));
  return make("tr", {}, ...cells);
}

export function workloadsTable(caption, starts) {
  const body = make("tbody");
  const heads = ["Place", "Job", "Namespace", "Priority", "State", "Reason", ...(starts ? ["Expected start"] : [])];
  const table = make("table", {}, make("caption", { class: "unseen" }, caption),
    make("thead", {}, make("tr", {}, ...heads.map((head) =>
      make("th", { scope: "col", class: head === "Place" ? "number narrow" : head === "Priority" ? "number optional" : "" }, head)))), body);
  return { table: make("div", { class: "scroll" }, table), body };
}

// Use over time as a line for each resource, and the same in words.
export function chart(name, times, used) {
  const first = times[0];
  const span = Math.max(1, times[times.length - 1] - first);
  const most = Math.max(...used, 1);
  const points = times.map((time, index) => {
    const x = (1000 * (time - first)) / span;
    const y = 96 - (92 * used[index]) / most;
    return index === 0 ? `M${x} ${y}` : `H${x}V${y}`;
  });
  const words = `${name}: between ${Math.min(...used)} and ${most} in the last ${Math.max(1, Math.round(span / 60))} minutes, ${used[used.length - 1]} now`;
  const picture = drawn("svg", { class: "chart", viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": words });
  picture.append(drawn("path", { d: points.join("") }));
  return make("figure", {}, picture, make("figcaption", { class: "quiet" }, words));
}
