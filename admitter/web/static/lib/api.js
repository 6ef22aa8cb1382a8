// Requests to the server, the stream that tells of changes, and the address after #.

import { useEffect, useRef, useState } from "/lib/preact.js";
import { changes } from "/lib/changes.js";
import { words } from "/lib/words.js";

const RETRY_MS = 3000;
const AGAIN_MS = 1000;

// An answer of the server that refuses, in a sentence.
export class Refused extends Error {
  constructor(status, said) {
    super(said);
    this.status = status;
  }
}

// Whether the same question may be answered soon.
export const passes = (error) => !(error instanceof Refused) || error.status >= 500 || error.status === 429;

async function answered(request) {
  const answer = await request;
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  if (answer.status === 401) dispatchEvent(new Event("loggedout"));
  throw new Refused(answer.status, said.error ?? words.api.answers(answer.status));
}

export const ask = (path, query = {}, signal = undefined) =>
  answered(fetch(`${path}?${new URLSearchParams(query)}`, { credentials: "same-origin", signal }));

export const send = (method, path, body, signal = undefined) =>
  answered(fetch(path, {
    method, credentials: "same-origin", signal,
    headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  }));

// What views show is asked for again at each `changed`: of the cluster, or of whether the stream of changes is lost. Then
// requests tell why: the session is over, or the server can't be reached.
let lost = false;
function tell(said) {
  if (said.lost === lost) return;
  lost = said.lost ?? lost;
  dispatchEvent(new Event("changed"));
}

// All tabs share one stream, in a worker, where browsers have such workers.
let end = null; // ends the stream of this tab; null: there is none
export function follow() {
  if (end !== null) return;
  const own = () => (end = changes(tell));
  if (!window.SharedWorker) return own();
  const worker = new SharedWorker("/lib/stream.js", { name: "admitter", type: "module" });
  worker.onerror = () => end !== null && own(); // it has not come
  worker.port.onmessage = ({ data }) => tell(data);
  worker.port.postMessage("follow");
  end = () => worker.port.postMessage("leave");
  addEventListener("pagehide", end, { once: true });
}

export function leave() {
  end?.();
  end = null;
  lost = false;
}

// Whether the stream of changes is lost.
export function useLost() {
  const [now, setNow] = useState(lost);
  useEffect(() => {
    const changed = () => setNow(lost);
    addEventListener("changed", changed);
    changed();
    return () => removeEventListener("changed", changed);
  }, []);
  return now;
}

// The answer to a question, asked again at each change: {answer, error, again}. The last answer stays while the next
// one is on its way, and while the server can't be reached. `path` null: nothing is asked. again() asks at once.
export function useAnswer(path, query = {}) {
  const question = path === null ? null : `${path}?${new URLSearchParams(query)}`;
  const [known, setKnown] = useState({ question: null, answer: null, error: null });
  const again = useRef(() => undefined);
  useEffect(() => {
    if (question === null) return undefined;
    const ending = new AbortController();
    let busy = false;
    let due = false;
    let retry = 0;
    async function look() {
      if (busy) {
        due = true; // once more afterwards
        return;
      }
      busy = true;
      due = false;
      clearTimeout(retry);
      try {
        const answer = await ask(path, query, ending.signal);
        setKnown({ question, answer, error: null });
      } catch (error) {
        if (ending.signal.aborted) return;
        setKnown((last) => ({ question, answer: last.question === question ? last.answer : null, error }));
        if (passes(error)) retry = setTimeout(look, RETRY_MS);
      }
      busy = false;
      if (due) look();
    }
    again.current = look;
    addEventListener("changed", look);
    look();
    return () => {
      ending.abort();
      clearTimeout(retry);
      removeEventListener("changed", look);
    };
  }, [question]);
  const now = known.question === question ? known : { answer: null, error: null };
  return { answer: now.answer, error: now.error, again: () => again.current() };
}

// Asks again soon, by the again() of useAnswer, while the answer lacks what takes the server long.
export function useAgain(answer, whole, again) {
  useEffect(() => {
    if (!answer || whole) return undefined;
    const due = setTimeout(again, AGAIN_MS);
    return () => clearTimeout(due);
  }, [answer]);
}

// The address after #: {path: [...], query: {...}}, and what changes it. A change of `query` alone replaces the entry
// of the history; an empty value leaves the query.
export function useRoute() {
  const [route, setRoute] = useState(parse);
  const first = useRef(location.hash);
  useEffect(() => {
    const changed = () => setRoute(parse());
    addEventListener("hashchange", changed);
    if (location.hash !== first.current) changed(); // between the first drawing and this
    return () => removeEventListener("hashchange", changed);
  }, []);
  const go = ({ path, query }) => {
    const before = parse();
    const wanted = path === undefined ? { ...before.query, ...query } : query ?? {};
    const kept = Object.entries(wanted).filter(([, value]) => value !== "" && value !== null && value !== undefined);
    const address = href(path ?? before.path, Object.fromEntries(kept));
    if (path === undefined) {
      history.replaceState(null, "", address);
      setRoute(parse());
    } else {
      location.hash = address;
    }
  };
  return [route, go];
}

function parse() {
  const [path, query] = location.hash.slice(1).split("?");
  const parts = path.split("/").filter((each) => each !== "").map((each) => {
    try {
      return decodeURIComponent(each);
    } catch {
      return each;
    }
  });
  return { path: parts, query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

export function href(path, query = {}) {
  const asked = new URLSearchParams(query).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${asked ? `?${asked}` : ""}`;
}
