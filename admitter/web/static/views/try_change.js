// Try a change: sliders and numbers for the quota of queues, and beside them what that would do. It makes nothing.

import { html, useEffect, useMemo, useRef, useState } from "/lib/preact.js";
import { Refused, send, useAnswer } from "/lib/api.js";
import { inBytes, near, quantity } from "/lib/format.js";
import { Bar, Empty, Failure, QueueLink, State, Title } from "/lib/parts.js";
import { words } from "/lib/words.js";
import { Difference, Written } from "/views/tried.js";
import { decoded, keyOf, numberOf, quantityOf, spelled } from "/views/wishes.js";

const say = words.try;
const PAUSE_MS = 300; // a slider that moves is not asked about
const OFFERED = 60; // queues that are offered at a time
const AGAIN_MS = 30000; // how often an answer is worked out again though the user changes nothing

export default function TryChange({ route, go }) {
  const names = useMemo(() => (route.query.queues ?? "").split(",").filter((each) => each), [route.query.queues]);
  const { answer, error } = useAnswer("/api/try", { queues: names.join(",") });
  const [wishes, setWishes] = useWishes(route, go);
  const known = answer?.queues ?? [];
  const mine = useMemo(() => Object.fromEntries(Object.entries(wishes).filter(([key]) => names.includes(JSON.parse(key)[0]))), [wishes, names]);
  const may = known.filter((queue) => queue.may).map((queue) => queue.name);
  const tried = useTrial(Object.entries(mine).filter(([key]) => may.includes(JSON.parse(key)[0])), answer !== null);
  const choose = (more) => go({ query: { queues: more.join(",") } });
  return html`<${Title}>${say.title}<//>
    <p class="nothing">${say.nothing}</p>
    <${State} answer=${answer} error=${error} />
    ${answer && html`<${Chooser} names=${names} every=${answer.every} most=${answer.most} choose=${choose} />`}
    ${answer && (names.length === 0 ? html`<${Offers} offers=${answer.offers} choose=${choose} />` : html`<div class="trial">
      <div class="wishes">${known.map((queue) => html`<${Queue} key=${queue.name} queue=${queue} wishes=${mine} refused=${tried.answer?.refused ?? []}
        set=${(key, value) => setWishes({ ...wishes, [key]: value })} drop=${(keys) => setWishes(without(wishes, keys))}
        leave=${() => choose(names.filter((each) => each !== queue.name))} />`)}</div>
      <${Outcome} tried=${tried} changes=${Object.keys(mine).length} /></div>`)}`;
}

const without = (wishes, keys) => Object.fromEntries(Object.entries(wishes).filter(([key]) => !keys.includes(key)));

// What is wished, and the same in the address a moment later; what the address says counts when it changes by itself.
function useWishes(route, go) {
  const [wishes, setWishes] = useState(() => decoded(route.query.set));
  const written = useRef(route.query.set ?? "");
  useEffect(() => {
    if ((route.query.set ?? "") === written.current) return;
    written.current = route.query.set ?? "";
    setWishes(decoded(route.query.set));
  }, [route.query.set]);
  useEffect(() => {
    const text = spelled(wishes);
    if (text === written.current) return undefined;
    const later = setTimeout(() => {
      written.current = text;
      go({ query: { set: text } });
    }, PAUSE_MS);
    return () => clearTimeout(later);
  }, [wishes]);
  return [wishes, setWishes];
}

// What the server says of some wishes: {answer, error, busy}. Only the newest question counts.
function useTrial(entries, ready) {
  const [known, setKnown] = useState({ answer: null, error: null, busy: false });
  const question = JSON.stringify(entries);
  const asked = useRef({ question: null, at: 0 });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    const changed = () => {
      const due = Date.now() - asked.current.at > AGAIN_MS && document.visibilityState === "visible";
      if (due && asked.current.question !== null) setAgain((number) => number + 1);
    };
    addEventListener("changed", changed);
    return () => removeEventListener("changed", changed);
  }, []);
  useEffect(() => {
    if (!ready || question === "[]") {
      setKnown({ answer: null, error: null, busy: false });
      return undefined;
    }
    const ending = new AbortController();
    setKnown((last) => ({ ...last, busy: true }));
    const later = setTimeout(async () => {
      asked.current = { question, at: Date.now() };
      try {
        const set = JSON.parse(question).map(([key, value]) => {
          const [queue, resource, flavor, part] = JSON.parse(key);
          return { queue, resource, flavor, part, value };
        });
        const answer = await send("POST", "/api/try", { set }, ending.signal);
        setKnown({ answer, error: null, busy: false });
      } catch (error) {
        if (!ending.signal.aborted) setKnown((last) => ({ answer: last.answer, error, busy: false }));
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(later);
      ending.abort();
    };
  }, [question, ready, again]);
  return known;
}

function Chooser({ names, every, most, choose }) {
  const field = useRef(null);
  const [wrong, setWrong] = useState("");
  const add = (event) => {
    event.preventDefault();
    const name = field.current.value.trim();
    if (!every.includes(name)) setWrong(say.noSuchQueue(name));
    else {
      setWrong("");
      field.current.value = "";
      if (!names.includes(name)) choose([...names, name]);
    }
  };
  return html`<form class="tools" onSubmit=${add}>
    <label>${say.queue} <input list="every-queue" ref=${field} autocomplete="off" spellcheck="false" required disabled=${names.length >= most} /></label>
    <datalist id="every-queue">${every.filter((each) => !names.includes(each)).map((each) => html`<option key=${each} value=${each} />`)}</datalist>
    <button type="submit" disabled=${names.length >= most}>${say.add}</button>
    <span class="error" role="alert">${names.length >= most ? say.most(most) : wrong}</span></form>`;
}

// All queues to choose from, the scarcest first, as far as they are not too many to look at.
function Offers({ offers, choose }) {
  const [find, setFind] = useState("");
  const wanted = find.trim().toLowerCase();
  const found = offers.filter((each) => each.name.toLowerCase().includes(wanted));
  if (offers.length === 0) return html`<${Empty}>${say.noQueues}<//>`;
  return html`<p>${say.choose}</p>
    ${offers.length > OFFERED && html`<div class="tools"><label>${words.quota.find} <input type="search" autocomplete="off" spellcheck="false" value=${find} onInput=${(event) => setFind(event.target.value)} /></label></div>`}
    <ul class="offers">${found.slice(0, OFFERED).map((each) => html`<li key=${each.name}><button type="button" onClick=${() => choose([each.name])}>
      <bdi class="name">${each.name}</bdi>${each.use ? html`<${Scarcest} use=${each.use} />` : html`<small>${words.quota.noQuota}</small>`}<small>${say.waits(each.waiting)}</small></button></li>`)}</ul>
    ${found.length > OFFERED && html`<p class="quiet">${say.moreQueues(found.length - OFFERED)}</p>`}
    ${found.length === 0 && html`<${Empty}>${words.quota.noneFound}<//>`}`;
}

function Scarcest({ use }) {
  const amounts = Object.fromEntries(["used", "min", "max", "borrowed", "lent"].map((name) => [name, quantity(use.resource, use[name] ?? 0)]));
  return html`<${Bar} parts=${[{ value: use.used - use.borrowed, kind: "own" }, { value: use.borrowed, kind: "borrowed" }]} most=${Math.max(use.used, use.min)}
    label=${words.quota.bar(amounts, use.max !== null)} /><small>${words.quota.used(amounts, use.max !== null)} <bdi>${use.resource}</bdi> ${words.quota.in} <bdi>${use.flavor || words.quota.anyFlavor}</bdi></small>`;
}

function Queue({ queue, wishes, refused, set, drop, leave }) {
  const mine = Object.keys(wishes).filter((key) => JSON.parse(key)[0] === queue.name);
  const wrong = refused.filter((each) => each.queue === queue.name);
  const whole = wrong.filter((each) => each.part === "");
  return html`<fieldset><legend><h2><${QueueLink} name=${queue.name} title=${queue.title ?? queue.name} /></h2></legend>
    <div class="tools">
      ${mine.length > 0 && html`<button type="button" onClick=${() => drop(mine)}>${say.undo}</button>`}
      <button type="button" onClick=${leave} aria-label=${say.leaveOf(queue.name)}>${say.leave}</button></div>
    ${!queue.known && html`<p class="error">${say.unknown}</p>`}
    ${queue.known && !queue.may && html`<p class="warning">${say.mayNot}</p>`}
    ${whole.map((each) => html`<p class="error" role="alert" key=${each.message}>${each.message}</p>`)}
    ${queue.known && queue.quotas.length === 0 && html`<p class="empty">${say.inherits}</p>`}
    ${queue.known && queue.quotas.map((quota) => html`<${Quota} key=${`${quota.resource} ${quota.flavor}`} queue=${queue} quota=${quota} wishes=${wishes} wrong=${wrong} set=${set} drop=${drop} />`)}
    ${queue.known && (queue.fair
      ? html`<section><h3>${say.weight}</h3><${Field} name=${say.weight} of=${queue.name} known=${queue.weight.written} value=${wishes[keyOf(queue.name, "", "", "weight")]}
          end=${Math.max(4, 2 * queue.weight.value)} resource="" step=${0.5} may=${queue.may} wrong=${wrong.find((each) => each.part === "weight")}
          set=${(value) => set(keyOf(queue.name, "", "", "weight"), value)} drop=${() => drop([keyOf(queue.name, "", "", "weight")])} /></section>`
      : html`<p class="quiet small">${say.noWeight(queue.root)}</p>`)}</fieldset>`;
}

function Quota({ queue, quota, wishes, wrong, set, drop }) {
  const { resource, flavor } = quota;
  const end = ending(quota);
  const fields = ["min", "max"].map((part) => {
    const key = keyOf(queue.name, resource, flavor, part);
    return html`<${Field} key=${part} name=${say[part]} of=${say.of(resource, flavor, queue.name)} optional=${part === "max"} known=${quota[part]?.written ?? ""}
      value=${wishes[key]} end=${end} resource=${resource} step=${stepOf(resource, end)} may=${queue.may}
      wrong=${wrong.find((each) => each.part === part && each.resource === resource && each.flavor === flavor)}
      set=${(value) => set(key, value)} drop=${() => drop([key])} />`;
  });
  return html`<section><h3><bdi>${resource}</bdi> <small>${words.quota.in} <bdi>${flavor}</bdi></small></h3>
    <p class="quiet small">${say.now(quantity(resource, quota.used.value), quantity(resource, quota.whole.value))}</p>${fields}</section>`;
}

// To where sliders go: some more than there is now, so that it can be tried.
const ending = (quota) => Math.max(1, quota.end * 1.5);

// How much one step of a slider is: whole devices, cores or Gi, or less where there are only a few.
function stepOf(resource, end) {
  const unit = inBytes(resource) ? 1024 ** 3 : 1;
  const rough = end / unit / 200;
  if (resource === "cpu" && end <= 4) return 0.1;
  if (rough <= 1) return end / unit < 4 && unit > 1 ? unit / 64 : unit;
  return unit * 10 ** Math.floor(Math.log10(rough));
}

// A number with its slider; `value` undefined: as it is known.
function Field({ name, of, known, value, end, resource, step, may, wrong, set, drop, optional = false }) {
  const id = useRef(`field-${Math.random().toString(36).slice(2)}`).current;
  const text = value ?? known;
  const number = numberOf(text);
  const changed = value !== undefined && value !== known;
  const slide = (event) => set(quantityOf(resource, Number(event.target.value), step));
  const write = (event) => (event.target.value.trim() === known ? drop() : set(event.target.value));
  return html`<div class=${changed ? "field changed" : "field"}>
    <label for=${id}>${name}</label>
    <input class="slide" type="range" aria-label=${say.slider(name, of)} min="0" max=${Math.max(end, number ?? 0)} step=${step} value=${number ?? end} disabled=${!may}
      aria-valuetext=${text === "" ? say.noMax : text} onInput=${slide} />
    <input class="exact" id=${id} type="text" inputmode="text" autocomplete="off" spellcheck="false" maxlength="64" value=${text} placeholder=${optional ? say.noMax : ""} disabled=${!may}
      aria-invalid=${String(Boolean(wrong))} aria-describedby=${`${id}-said`} aria-label=${say.exact(name, of)} onInput=${write} />
    <span class="was">${changed && html`${say.was(known === "" ? say.noMax : known)} <button type="button" class="plain" onClick=${drop} aria-label=${say.backOf(name, of)}>${say.back}</button>`}</span>
    <span class="said error" id=${`${id}-said`} role="alert">${wrong?.message ?? ""}</span></div>`;
}

function Outcome({ tried, changes }) {
  const { answer, error, busy } = tried;
  const none = !answer && !error && !busy;
  const old = error instanceof Refused && error.status === 409; // the same user tries something in another tab
  const status = busy ? say.busy : none ? say.noChange : answer ? say.asOf(near(answer.taken, answer.taken)) : "";
  return html`<section class="outcome" aria-labelledby="outcome-heading"><h2 id="outcome-heading">${say.outcome}</h2>
    <p class=${busy ? "status busy" : "status"} role="status">${status}</p>
    ${!busy && (old ? html`<p class="warning">${say.elsewhere}</p>` : html`<${Failure} error=${error} />`)}
    ${none && changes === 0 && html`<${Empty}>${say.move}<//>`}
    ${answer && html`<div class=${busy ? "old" : ""} aria-busy=${String(busy)}>
      ${answer.refused.length > 0 && html`<p class="warning">${say.refused}</p>`}
      ${answer.late && html`<p class="warning">${answer.late}</p>`}
      ${answer.difference && html`<${Difference} difference=${answer.difference} taken=${answer.taken} />`}
      ${!answer.difference && !answer.late && answer.refused.length === 0 && html`<${Empty}>${say.same}<//>`}
      ${answer.manifest && html`<${Written} answer=${answer} />`}</div>`}</section>`;
}
