// The shell: who looks, which view the address names, and what is said above all views.

import { html, render, useCallback, useEffect, useErrorBoundary, useRef, useState } from "/lib/preact.js";
import { Refused, ask, follow, leave, send, useAnswer, useLost, useRoute } from "/lib/api.js";
import { Failure } from "/lib/parts.js";
import { words } from "/lib/words.js";

// The first part of the address, and the module of the view. `tree`: only for users that may list ClusterQueues.
const VIEWS = {
  overview: { tree: true, menu: true },
  map: { module: "cluster_map", menu: true },
  quota: { module: "quota_tree", tree: true, menu: true },
  workloads: { menu: true },
  timeline: { menu: true },
  my: { module: "mine", menu: true },
  try: { module: "try_change" },
  queue: {},
  workload: {},
  namespace: { module: "mine" },
};

const TOKEN_COMMAND = "kubectl create token NAME -n NAMESPACE";

// A view's module and style are loaded when it is first looked at.
const loaded = new Map();
function load(name) {
  if (!loaded.has(name)) {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = `/views/${name}.css`;
    const styled = new Promise((resolve) => (style.onload = style.onerror = resolve)); // drawn once, with its style
    document.head.append(style);
    loaded.set(name, Promise.all([import(`/views/${name}.js`), styled]).then(([module]) => module.default));
    loaded.get(name).catch(() => loaded.delete(name));
  }
  return loaded.get(name);
}

function Console() {
  const [me, setMe] = useState(null); // null: not asked yet; {name}: logged in; {out}: not logged in
  const [failure, setFailure] = useState(null);
  const arrive = useCallback(async () => {
    try {
      setMe(await ask("/api/me"));
      setFailure(null);
      follow();
    } catch (error) {
      if (error instanceof Refused && error.status === 401) setMe({ out: true });
      else setFailure(error);
    }
  }, []);
  useEffect(() => {
    arrive();
    const out = () => {
      leave();
      setMe({ out: true });
    };
    addEventListener("loggedout", out);
    return () => removeEventListener("loggedout", out);
  }, []);
  useEffect(() => {
    if (failure === null) return undefined;
    const again = setTimeout(arrive, 3000);
    return () => clearTimeout(again);
  }, [failure]);
  if (me === null) return html`<main>${failure && html`<${Failure} error=${failure} />`}</main>`;
  if (me.out) return html`<${Login} onEnter=${arrive} />`;
  return html`<${Shell} me=${me} />`;
}

function Shell({ me }) {
  const [route, go] = useRoute();
  const name = VIEWS[route.path[0]] ? route.path[0] : me.tree ? "overview" : "my";
  const allowed = me.tree || !VIEWS[name].tree;
  const main = useRef(null);
  const seen = useRef(location.hash);
  useEffect(() => {
    if (seen.current.split("?")[0] === location.hash.split("?")[0]) return;
    seen.current = location.hash;
    main.current.focus({ preventScroll: true });
    scrollTo(0, 0);
  });
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>${words.shell.skip}</a>
    <header>
      <a class="brand" href="#/">Admitter</a>
      <nav aria-label=${words.shell.views}>
        ${Object.entries(VIEWS).filter(([, view]) => view.menu && (me.tree || !view.tree)).map(([each]) => html`
          <a key=${each} href=${`#/${each}`} aria-current=${each === name ? "page" : null}>${words.shell.menu[each]}</a>`)}
      </nav>
      <${Search} />
      <p class="who"><bdi>${me.name}</bdi> ${!me.demo && html`<button type="button" onClick=${logOut}>${words.shell.logOut}</button>`}</p>
    </header>
    ${me.demo && html`<${Demo} me=${me} />`}
    <${Controller} />
    <main id="main" tabindex="-1" ref=${main}>
      ${allowed
        ? html`<${View} key=${`${name}/${route.path.slice(1).join("/")}`} name=${VIEWS[name].module ?? name} route=${route} go=${go} me=${me} />`
        : html`<h1>${words.shell.menu[name]}</h1><p class="error" role="alert">${words.shell.noTree(me.name)}</p>`}
    </main>`;
}

function View({ name, route, go, me }) {
  const [view, setView] = useState(null);
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    load(name).then((found) => setView(() => found), setFailure);
  }, [name]);
  const [broken] = useErrorBoundary(); // an error of one view leaves the menu, by which others are reached
  const error = failure ?? broken;
  if (error) return html`<${Unloaded} name=${name} error=${error} />`;
  return view && html`<${view} route=${route} go=${go} me=${me} />`;
}

// A view that has not come, or that has failed: the server may have another version by now.
function Unloaded({ name, error }) {
  useEffect(() => console.error(error), [error]);
  return html`<h1>${words.shell.menu[name] ?? words.shell.failed}</h1><p class="error" role="alert">${words.shell.unloaded}</p>
    <button type="button" onClick=${() => location.reload()}>${words.shell.reload}</button>`;
}

// What makes all that is shown doubtful is said above all views: changes are not told of, or no controller decides, so that
// nothing of what is foreseen happens.
function Controller() {
  const { answer, error } = useAnswer("/api/controller");
  const lost = useLost();
  const known = error ? null : answer;
  const bad = lost || known?.state === "Absent" || known?.state === "Partial";
  return html`<p class=${bad ? "controller bad" : "controller"} role="status">${lost && `${words.shell.lost} `}${known?.message}</p>`;
}

function Demo({ me }) {
  const choose = async (event) => {
    await send("POST", "/api/demo", { person: event.target.value });
    location.reload();
  };
  return html`<p class="demo">${words.shell.demo}
    <label>${words.shell.lookAs} <select value=${me.name} onChange=${choose}>
      ${me.demo.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label></p>`;
}

// A namespace, or a workload as NAMESPACE/NAME.
function Search() {
  const look = (event) => {
    event.preventDefault();
    const [namespace, ...name] = event.target.elements.sought.value.trim().split("/");
    if (!namespace) return;
    location.hash = ["#", name.length ? "workload" : "namespace", namespace, ...(name.length ? [name.join("/")] : [])]
      .map((each, index) => (index ? encodeURIComponent(each) : each)).join("/");
    event.target.reset();
  };
  return html`<form role="search" onSubmit=${look}>
    <label for="sought" class="unseen">${words.shell.search}</label>
    <input id="sought" name="sought" type="search" autocomplete="off" spellcheck="false" placeholder=${words.shell.searchHint} size="22" />
    <button type="submit">${words.shell.show}</button></form>`;
}

async function logOut() {
  leave();
  await fetch("/api/session", { method: "DELETE", credentials: "same-origin" });
  dispatchEvent(new Event("loggedout"));
}

function Login({ onEnter }) {
  const [error, setError] = useState("");
  const field = useRef(null);
  useEffect(() => {
    document.title = `${words.login.title} – Admitter`;
    field.current.focus();
  }, []);
  const enter = async (event) => {
    event.preventDefault();
    setError("");
    const answer = await fetch("/api/session", { method: "POST", body: field.current.value, credentials: "same-origin" });
    if (answer.ok) {
      field.current.value = "";
      await onEnter();
    } else {
      setError((await answer.json().catch(() => ({}))).error ?? words.api.answers(answer.status));
    }
  };
  return html`<header><a class="brand" href="#/">Admitter</a></header>
    <main><h1>${words.login.title}</h1>
    <form class="login" onSubmit=${enter}>
      <label for="token">${words.login.token}</label>
      <textarea id="token" required autocomplete="off" spellcheck="false" ref=${field}></textarea>
      <p class="error" role="alert">${error}</p>
      <button type="submit">${words.login.enter}</button>
    </form>
    <p class="quiet">${words.login.hint} <code>${TOKEN_COMMAND}</code></p></main>`;
}

render(html`<${Console} />`, document.getElementById("console"));
