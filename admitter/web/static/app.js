// Chooses the page by the address after #, and requests it again when the server reports a change.

import { chart, make, place, placesTable, sync, workloadRow, workloadsTable } from "/view.js";

const main = document.getElementById("main");
const state = document.getElementById("state");
const controller = document.getElementById("controller");
const closed = new Set();
let shown = null; // what draws the page: {refresh}
let changes = null;
let dueAgain = false;
let busy = false;

class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

async function ask(path, query = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`, { credentials: "same-origin" });
  const said = await answer.json().catch(() => ({ error: `the server answers ${answer.status}` }));
  if (!answer.ok) throw new Refused(answer.status, said.error ?? `the server answers ${answer.status}`);
  return said;
}

function say(words, bad = false) {
  state.textContent = words;
  state.classList.toggle("bad", bad);
}

function title(words) {
  document.title = `${words} – Admitter`;
  return make("h1", {}, words);
}

const asOf = (taken) => `As of ${new Date(taken * 1000).toLocaleTimeString()}`;

// Without a controller nothing of what the page foresees happens: that is said above all pages.
async function showController() {
  const answer = await ask("/api/controller");
  if (controller.textContent !== answer.message) controller.textContent = answer.message;
  controller.classList.toggle("bad", answer.state === "Absent" || answer.state === "Partial");
  controller.hidden = false;
}

// Redraw; if something changes meanwhile, once more afterwards.
async function refresh() {
  if (busy) {
    dueAgain = true;
    return;
  }
  busy = true;
  const page = shown;
  try {
    if (page.live) await showController();
    await page.refresh();
    if (page === shown) refused("");
  } catch (error) {
    if (page === shown) await failed(error);
  }
  busy = false;
  if (dueAgain || page !== shown) {
    dueAgain = false;
    refresh();
  }
}

// What is not there, or may not be seen, is said in place of empty tables.
function refused(words) {
  const told = main.querySelector(":scope > .error");
  main.classList.toggle("refused", words !== "");
  if (told?.textContent === words) return;
  told?.remove();
  if (words) main.append(make("p", { class: "error", role: "alert" }, words));
}

async function failed(error) {
  if (error instanceof Refused && error.status === 401) {
    stop();
    shown = login();
  } else {
    if (error instanceof Refused && error.status < 500) refused(error.message);
    say(error instanceof Refused ? error.message : "The server can't be reached; this page tries again.", true);
    if (!(error instanceof Refused) || error.status >= 500) setTimeout(refresh, 3000);
  }
}

function follow() {
  if (changes !== null) return;
  changes = new EventSource("/api/changes");
  changes.onmessage = () => refresh();
  changes.onerror = () => {
    if (changes?.readyState === EventSource.CLOSED) {
      changes = null;
      setTimeout(() => shown?.live && follow(), 3000);
    }
  };
}

function stop() {
  changes?.close();
  changes = null;
}

function treePage() {
  const filter = make("input", { id: "filter", type: "search", autocomplete: "off", oninput: () => draw() });
  const order = make("select", { id: "order", onchange: () => draw() },
    ...[["tree", "as a tree"], ["waiting", "by waiting workloads"], ["share", "by part in use"], ["recent", "by admissions"]]
      .map(([value, words]) => make("option", { value }, words)));
  const { table, body } = placesTable("Quota of all queues and cohorts, and the workloads that wait for it");
  const none = make("p", { hidden: true });
  main.replaceChildren(title("Quota"),
    make("div", { class: "tools" }, make("label", { for: "filter" }, "Filter"), filter,
      make("label", { for: "order" }, "Order"), order), none, table);
  let lines = [];

  const share = (line) => Math.max(0, ...line.uses.map((use) => use.used / (use.min || use.used || 1)));
  function toggle(line) {
    const key = `${line.kind}/${line.name}`;
    closed.has(key) ? closed.delete(key) : closed.add(key);
    draw();
  }
  function draw() {
    const wanted = filter.value.trim().toLowerCase();
    const parents = new Set(lines.map((line) => line.parent));
    let below = Infinity; // deeper than a closed cohort
    let found = [];
    for (const line of lines) {
      const key = `${line.kind}/${line.name}`;
      if (order.value === "tree" && !wanted) {
        if (line.depth > below) continue;
        below = closed.has(key) ? line.depth : Infinity;
      }
      if (wanted && !line.title.toLowerCase().includes(wanted)) continue;
      const parentOf = line.kind === "cohort" && parents.has(line.name) && order.value === "tree" && !wanted;
      found.push({ ...line, parentOf, closed: closed.has(key) });
    }
    if (order.value !== "tree") {
      const by = { waiting: (l) => l.waiting, share, recent: (l) => l.recent }[order.value];
      found = found.filter((line) => line.kind === "queue").map((line) => ({ ...line, depth: 0 }))
        .sort((one, other) => by(other) - by(one) || one.title.localeCompare(other.title));
    }
    sync(body, found, (line) => `${line.kind}/${line.name}`, (line) => place(line, toggle));
    table.hidden = found.length === 0;
    none.hidden = found.length > 0;
    none.textContent = lines.length === 0
      ? "There are no queues yet. An administrator makes a ResourceFlavor, a ClusterQueue and a LocalQueue; Jobs that name it wait here."
      : "No queue's name has that in it.";
  }
  return {
    live: true,
    async refresh() {
      const answer = await ask("/api/tree");
      lines = answer.lines;
      const waiting = lines.filter((l) => l.kind === "queue").reduce((sum, line) => sum + line.waiting, 0);
      say(`${asOf(answer.taken)}: ${lines.filter((l) => l.kind === "queue").length} queues, ${waiting} waiting`);
      draw();
    },
  };
}

// starts: by namespace and name; null while they are computed; undefined where none are shown.
function workloads(table, rows, starts) {
  const start = (row) => (starts === null ? (row.visible ? "…" : "") : starts?.[`${row.namespace}/${row.name}`]?.words ?? (starts ? "" : undefined));
  sync(table.body, rows.map((row) => ({ ...row, start: start(row) })),
    (row) => (row.visible ? `${row.namespace}/${row.name}` : `#${row.position}/${row.state}`),
    (row) => workloadRow(row, row.start));
}

function queuePage(name) {
  const namespace = new URLSearchParams(location.hash.split("?")[1] ?? "").get("namespace") ?? "";
  const head = title(name);
  const use = placesTable("Use of its quota");
  const course = make("div");
  const waiting = workloadsTable("Waiting workloads, in the order of their turn", true);
  const holding = workloadsTable("Workloads that hold quota", false);
  const more = make("p", { class: "quiet" });
  const moreHolding = make("p", { class: "quiet" });
  main.replaceChildren(head, use.table, make("h2", {}, "Waiting"), waiting.table, more,
    make("h2", {}, "Admitted"), holding.table, moreHolding, make("h2", {}, "Use over time"), course);
  let starts = null;
  return {
    live: true,
    async refresh() {
      const query = { name, ...(namespace ? { namespace } : {}) };
      const answer = await ask("/api/queue", query);
      head.textContent = answer.line.title;
      document.title = `${answer.line.title} – Admitter`;
      say(`${asOf(answer.taken)}: ${answer.line.waiting} waiting, ${answer.line.admitted} admitted`);
      sync(use.body, [{ ...answer.line, depth: 0 }], (line) => line.name, (line) => place(line, null, false));
      workloads(waiting, answer.waiting, starts);
      workloads(holding, answer.holding);
      more.textContent = answer.waiting.length === 0 ? "No workload waits." : answer.moreWaiting ? `and ${answer.moreWaiting} more` : "";
      moreHolding.textContent = answer.holding.length === 0 ? "No workload holds quota." : answer.moreHolding ? `and ${answer.moreHolding} more` : "";
      const drawnCourses = Object.entries(answer.course.used).filter(() => answer.course.times.length > 1);
      course.replaceChildren(...(drawnCourses.length
        ? drawnCourses.map(([key, used]) => chart(key, answer.course.times, used))
        : [make("p", { class: "quiet" }, "It is collected from when this page's server started.")]));
      starts = answer.waiting.length ? await ask("/api/starts", query) : {};
      workloads(waiting, answer.waiting, starts);
    },
  };
}

function namespacePage(name) {
  const use = placesTable("Queues that its LocalQueues lead to");
  const found = workloadsTable("Its Workloads: those that hold quota, then those that wait", false);
  const more = make("p", { class: "quiet" });
  main.replaceChildren(title(`Namespace ${name}`), use.table, make("h2", {}, "Workloads"), found.table, more);
  return {
    live: true,
    async refresh() {
      const answer = await ask("/api/namespace", { name });
      say(`${asOf(answer.taken)}: ${answer.rows.length + answer.more} Workloads that have not finished`);
      sync(use.body, answer.lines, (line) => line.name, (line) => {
        const row = place(line);
        row.querySelector("a")?.setAttribute("href", `#/queue/${encodeURIComponent(line.name)}?namespace=${encodeURIComponent(name)}`);
        return row;
      });
      workloads(found, answer.rows);
      more.textContent = answer.rows.length === 0 ? "There are none." : answer.more ? `and ${answer.more} more` : "";
    },
  };
}

function workloadPage(namespace, name) {
  const text = make("pre", { class: "explanation" }, "Reading…");
  const timeline = make("ol", { class: "timeline" });
  const nothing = make("p", { class: "quiet", hidden: true }, "Nothing yet.");
  main.replaceChildren(title(`${namespace}/${name}`),
    make("p", {}, make("a", { href: `#/namespace/${encodeURIComponent(namespace)}` }, `All of ${namespace}`)),
    make("h2", {}, "Why"), text, make("h2", {}, "What has happened"), nothing, timeline);
  let complete = false; // more than its status is shown
  let outlook = null; // the last lines, as they were computed last
  function show(lines) {
    const words = lines.join("\n");
    if (text.textContent !== words) text.textContent = words;
  }
  return {
    live: true,
    async refresh() {
      const answer = await ask("/api/workload", { namespace, name });
      if (!answer.complete) {
        if (!complete) show(answer.lines);
        setTimeout(refresh, 1000);
        return;
      }
      complete = true;
      say(asOf(answer.taken));
      show([...answer.lines, ...(answer.waits ? outlook ?? ["Start: running playouts …"] : [])]);
      nothing.hidden = answer.timeline.length > 0;
      sync(timeline, answer.timeline, (each) => each.type, (each) =>
        make("li", {}, make("time", { datetime: each.lastTransitionTime }, new Date(each.lastTransitionTime).toLocaleString()),
          ` ${each.status === "True" ? "" : "no longer "}${each.type} `, make("span", { class: "kind" }, each.reason),
          make("div", { class: "quiet" }, each.message)));
      if (answer.waits) {
        outlook = (await ask("/api/outlook", { namespace, name })).lines;
        show([...answer.lines, ...outlook]);
      }
    },
  };
}

function login() {
  refused("");
  document.getElementById("who").hidden = true;
  controller.hidden = true;
  const token = make("textarea", { id: "token", required: true, autocomplete: "off", spellcheck: "false" });
  const error = make("p", { class: "error", role: "alert" });
  const form = make("form", {
    class: "login",
    onsubmit: async (event) => {
      event.preventDefault();
      error.textContent = "";
      const answer = await fetch("/api/session", { method: "POST", body: token.value, credentials: "same-origin" });
      if (answer.ok) {
        token.value = "";
        await route();
        main.focus();
      } else {
        error.textContent = (await answer.json().catch(() => ({}))).error ?? `the server answers ${answer.status}`;
      }
    },
  }, make("label", { for: "token" }, "A token that your cluster's API server knows"), token, error,
    make("button", { type: "submit" }, "Log in"));
  main.replaceChildren(title("Log in"), form,
    make("p", { class: "quiet" }, "You see what you may list there. For a service account: ",
      make("code", {}, "kubectl create token NAME -n NAMESPACE")));
  say("");
  token.focus();
  return { live: false, refresh: async () => undefined };
}

async function route() {
  refused("");
  const [, kind, ...rest] = location.hash.split("?")[0].split("/");
  const names = rest.map(decodeURIComponent);
  try {
    const me = await ask("/api/me");
    document.getElementById("user").textContent = me.name;
    document.getElementById("who").hidden = false;
    document.getElementById("to-tree").hidden = !me.tree;
    if (!kind && !me.tree) {
      main.replaceChildren(title("Choose a namespace"),
        make("p", {}, `${me.name} may not list ClusterQueues. Type the name of a namespace of yours above.`));
      say("");
      shown = { live: false, refresh: async () => undefined };
      return;
    }
  } catch (error) {
    shown = { live: false, refresh: route };
    await failed(error);
    return;
  }
  if (kind === "queue" && names[0]) shown = queuePage(names[0]);
  else if (kind === "namespace" && names[0]) shown = namespacePage(names[0]);
  else if (kind === "workload" && names[1]) shown = workloadPage(names[0], names[1]);
  else shown = treePage();
  say("Reading…");
  follow();
  refresh();
}

document.getElementById("go-namespace").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = document.getElementById("namespace").value.trim();
  if (name) location.hash = `#/namespace/${encodeURIComponent(name)}`;
});
document.getElementById("log-out").addEventListener("click", async () => {
  stop();
  await fetch("/api/session", { method: "DELETE", credentials: "same-origin" });
  shown = login();
});
window.addEventListener("hashchange", async () => {
  await route();
  main.focus({ preventScroll: true });
});
route();
