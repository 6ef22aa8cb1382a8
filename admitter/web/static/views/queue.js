// A queue: its quota, who waits in which order and why, when they start, and what holds its quota until when.

import { html, useMemo } from "/lib/preact.js";
import { useAnswer } from "/lib/api.js";
import { coloursOf } from "/lib/colours.js";
import { quantity, stepsOf } from "/lib/format.js";
import { Listing } from "/lib/listing.js";
import { Choice, Empty, Failure, State, Title } from "/lib/parts.js";
import { Stacked } from "/lib/plot.js";
import { QuotaBars } from "/lib/quota_bars.js";
import { words } from "/lib/words.js";

const WAITING = ["position", "name", "namespace", "user", "asks", "priority", "created", "start"];
const HOLDING = ["name", "namespace", "user", "asks", "priority", "since", "ends"];
const MOST_PLOTS = 4;

export default function Queue({ route, go }) {
  const name = route.path[1] ?? "";
  const from = route.query.from ?? "";
  const asked = { name, ...(from ? { "from-namespace": from } : {}) };
  const { answer, error } = useAnswer("/api/queue", asked);
  const group = route.query.group === "holding" ? "holding" : "waiting";
  const waits = group === "waiting";
  const { answer: starts } = useAnswer(waits && answer?.told && answer.line.waiting > 0 ? "/api/starts" : null, asked);
  const fixed = useMemo(() => ({ queue: name, group, ...(from ? { "from-namespace": from } : {}) }), [name, group, from]);
  if (!answer) return html`<${Title}>${name}<//>${error ? html`<${Failure} error=${error} />` : html`<${State} />`}`;
  const { line, told } = answer;
  const counts = { waiting: line.waiting, holding: line.admitted };
  const options = ["waiting", "holding"].map((each) => [each, words.queue.group[each](counts[each])]);
  const columns = waits ? WAITING.filter((each) => told || !["position", "start"].includes(each)) : HOLDING;
  const others = answer.everything ? "" : !told ? words.queue.untold : waits ? words.queue.hidden : words.queue.othersHold;
  return html`<${Title}>${line.title}<//>
    <${State} answer=${answer} error=${error}>${words.queue.state(line.waiting, line.admitted)}<//>
    ${line.problem && html`<p class="warning" role="alert">${words.queue.problem(line.problem)}</p>`}
    ${told ? html`<section aria-label=${words.queue.use}><${QuotaBars} uses=${line.uses} /></section>` : html`<${Empty}>${words.queue.untoldUse}<//>`}
    <div class="tools"><${Choice} label=${words.list.group} value=${group} options=${options}
      onChange=${(each) => go({ query: { group: each === "waiting" ? "" : each, sort: "", row: "" } })} /></div>
    <${Listing} key=${group} route=${route} go=${go} fixed=${fixed} order=${waits ? "position" : "ends"} low=${!waits} columns=${columns} starts=${waits && told ? starts : undefined} choices=${answer.choices}
      label=${words.queue.list[group]} empty=${words.queue.empty[group]} others=${others} />
    ${told && html`<${Course} course=${answer.course} line=${line} />`}`;
}

// Use over time of each resource in each flavor, with the quota as a line.
function Course({ course, line }) {
  const shown = course.used.filter((each) => each.used.some((value) => value)).slice(0, MOST_PLOTS);
  const colour = useMemo(() => coloursOf([line.name]).get(line.name), [line.name]);
  if (course.times.length < 2 || shown.length === 0) {
    return html`<h2>${words.queue.course}</h2><${Empty}>${course.times.length < 2 ? words.queue.noCourse : words.queue.noUse}<//>`;
  }
  return html`<h2>${words.queue.course}</h2><div class="courses">${shown.map((each) => {
    const use = line.uses.find((one) => one.flavor === each.flavor && one.resource === each.resource);
    const title = words.queue.resourceIn(each.resource, each.flavor);
    const format = (value) => quantity(each.resource, value);
    const limit = use && use.min > 0 ? { name: words.queue.quota, values: course.times.map(() => use.min) } : null;
    return html`<section key=${title}><h3>${title}</h3><${Stacked} times=${course.times} series=${[{ name: line.title, colour, values: each.used }]}
      limit=${limit} said=${words.queue.courseSaid(title, format(most(each.used)), format(last(each.used)))} format=${format} steps=${stepsOf(each.resource)} height=${140} /></section>`;
  })}</div>`;
}

const most = (values) => values.reduce((found, value) => Math.max(found, value ?? 0), 0);
const last = (values) => values.findLast((value) => value !== null) ?? 0;
