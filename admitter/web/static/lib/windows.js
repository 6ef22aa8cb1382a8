// Windows of a list that the server filters and sorts: only the pages in view are asked for, again at each change.

import { useEffect, useMemo, useRef, useState } from "/lib/preact.js";
import { ask, passes } from "/lib/api.js";

const PAGE = 100;
const RETRY_MS = 3000;
const KEPT = 30; // pages that are kept out of view

export const keyOf = (row) => (row?.visible ? `${row.namespace}/${row.workload}` : null);

// The list that a query means: {total, answer, error, rowAt(index), see(from, count), find(text, from), version}.
// A page of another revision of the cluster is shown until its newer one is there, and never kept as current.
export function useWindows(path, query) {
  const question = `${path}?${new URLSearchParams(query)}`;
  const [version, setVersion] = useState(0);
  const store = useMemo(() => new Windows(path, query, () => setVersion((last) => last + 1)), [question]);
  const last = useRef(null);
  useEffect(() => {
    const changed = () => store.changed();
    addEventListener("changed", changed);
    store.see(0, 1);
    return () => {
      removeEventListener("changed", changed);
      store.end();
    };
  }, [store]);
  if (store.answer !== null) last.current = store;
  const shown = store.answer === null && store.error === null && last.current !== null ? last.current : store;
  return {
    version, error: store.error, answer: shown.answer, total: shown.answer?.total ?? 0, current: shown === store,
    rowAt: (index) => shown.rowAt(index), see: (from, count) => store.see(from, count),
    find: (text, from) => store.find(text, from), indexOf: (key) => shown.indexOf(key),
  };
}

class Windows {
  constructor(path, query, tell) {
    Object.assign(this, { path, query, tell, answer: null, error: null, from: 0, to: 0, retry: 0 });
    this.pages = new Map(); // number: {rows, revision, old, reasoned}
    this.going = new Set();
    this.due = new Set(); // on their way, and old when they come
    this.ending = new AbortController();
  }

  end() {
    this.ending.abort();
    clearTimeout(this.retry);
  }

  rowAt(index) {
    return this.pages.get(Math.floor(index / PAGE))?.rows[index % PAGE];
  }

  indexOf(key) {
    for (const [number, page] of this.pages) {
      const place = page.rows.findIndex((row) => keyOf(row) === key);
      if (place >= 0 && !page.old) return number * PAGE + place;
    }
    return -1;
  }

  see(from, count) {
    this.from = Math.floor(Math.max(0, from) / PAGE);
    this.to = Math.floor(Math.max(0, from + count - 1) / PAGE);
    this.load();
  }

  changed() {
    for (const page of this.pages.values()) page.old = true;
    for (const number of this.going) this.due.add(number);
    this.load();
  }

  load() {
    for (let number = this.from; number <= this.to; number += 1) {
      const page = this.pages.get(number);
      if ((!page || page.old) && !this.going.has(number)) this.ask(number);
    }
  }

  async ask(number) {
    this.going.add(number);
    const known = this.pages.get(number);
    try {
      const query = { ...this.query, from: number * PAGE, count: PAGE };
      this.take(number, await ask(this.path, query, this.ending.signal));
      this.error = null;
    } catch (error) {
      if (this.ending.signal.aborted) return;
      this.error = error;
      clearTimeout(this.retry);
      if (passes(error)) this.loadLater();
      this.going.delete(number);
      this.tell();
      return;
    }
    this.going.delete(number);
    this.tell();
    this.load();
  }

  // Asks again for what has not come, and for pages whose reasons take the server long.
  loadLater() {
    clearTimeout(this.retry);
    this.retry = setTimeout(() => {
      for (const page of this.pages.values()) page.old ||= !page.reasoned;
      this.load();
    }, RETRY_MS);
  }

  take(number, answer) {
    const old = this.due.delete(number);
    if (this.answer !== null && this.answer.revision !== answer.revision) {
      for (const page of this.pages.values()) page.old ||= page.revision !== answer.revision;
    }
    this.answer = answer;
    this.pages.set(number, { rows: answer.rows, revision: answer.revision, old, reasoned: answer.reasoned });
    if (!answer.reasoned) this.loadLater();
    for (const each of this.pages.keys()) {
      if (this.pages.size <= KEPT) break;
      if (each < this.from || each > this.to) this.pages.delete(each);
    }
  }

  // The place of the next row whose name begins with a text; null: there is none.
  async find(text, from) {
    const answer = await ask(this.path, { ...this.query, from, count: 1, seek: text }, this.ending.signal);
    return answer.sought;
  }
}
