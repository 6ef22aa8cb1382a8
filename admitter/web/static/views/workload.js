// One workload: the rule that binds it on top, then what it asks for and what is free, what would let it in and when,
// what has happened to it, and its pods.

import { html, useRef, useState } from "/lib/preact.js";
import { useAgain, useAnswer } from "/lib/api.js";
import { span, within } from "/lib/format.js";
import { Command, Empty, Failure, Link, QueueLink, State, Time, Title } from "/lib/parts.js";
import { Needs } from "/views/workload_needs.js";
import { Outlook } from "/views/workload_outlook.js";
import { Life } from "/views/workload_life.js";
import { Other } from "/views/workload_other.js";
import { Pods } from "/views/workload_pods.js";
import { words } from "/lib/words.js";

const said = words.workload;
const MOST_AHEAD = 10;

export default function View({ route, go, me }) {
  const [, namespace = "", ...rest] = route.path;
  const query = { namespace, name: rest.join("/") };
  const { answer, error, again } = useAnswer("/api/workload", query);
  const shown = useLastWhole(answer);
  const outlook = useAnswer(shown?.waits ? "/api/outlook" : null, query);
  useAgain(answer, answer?.complete, again);
  const gone = error?.status === 404 && shown !== null;
  return html`<article class="workload">
    <${Title} of=${`${query.namespace}/${query.name}`}>${`${query.namespace}/${shown?.name ?? query.name}`}<//>
    ${error && !gone ? html`<${Failure} error=${error} />` : html`<${State} answer=${shown} />`}
    ${gone && html`<p class="warning" role="alert">${said.gone}</p>`}
    ${shown && html`<${Whole} answer=${gone ? { ...shown, waits: false } : shown} outlook=${outlook} route=${route} go=${go} me=${me} />`}
    ${error?.status === 404 && !shown && html`<${Empty}>${said.notThere}<//>`}
  </article>`;
}

// The newest answer; while one takes long to explain, the explanation before, unless its state is another by now.
function useLastWhole(answer) {
  const last = useRef(null);
  if (answer?.complete) last.current = answer;
  const known = last.current;
  if (!answer || answer.complete || !known || known.state !== answer.state || known.name !== answer.name) return answer;
  return { ...known, timeline: answer.timeline, pods: answer.pods };
}

function Whole({ answer, outlook, route, go, me }) {
  const waits = answer.state === "Pending" && answer.complete;
  const much = answer.flavors.length > 0 || answer.pods?.states.length > 0; // else the wide column is for its life
  const pods = html`<${Pods} answer=${answer} route=${route} go=${go} me=${me} />`;
  const life = html`<${Life} answer=${answer} />`;
  return html`
    <${Facts} answer=${answer} />
    <${Verdict} answer=${answer} />
    <div class="columns">
      <div>
        ${answer.flavors.length > 0 && html`<${Needs} answer=${answer} />`}
        ${answer.waits && html`<${Outlook} answer=${answer} outlook=${outlook} />`}
        ${waits && !answer.told && html`<${Empty}>${words.queue.untold}<//>`}
        ${waits && answer.waits && html`<${Ahead} answer=${answer} />`}
        ${much ? pods : life}
      </div>
      <div>
        <${Quota} answer=${answer} />
        ${much ? life : pods}
        <${Commands} commands=${answer.commands} />
      </div>
    </div>`;
}

// Where it is, in a line.
function Facts({ answer }) {
  const { queue, position, inLine } = answer;
  const look = answer.state === "Finished" || answer.state === "Gone" ? "" : answer.never ? "bad" : { Pending: "warn", Evicted: "warn", Admitted: "good" }[answer.state];
  return html`<p class="facts">
    ${answer.state && html`<span class=${`badge ${look}`}>${said.states[answer.state] ?? answer.state}</span>`}
    ${answer.reason && html`<code class="reason">${answer.reason}</code>`}
    ${queue && html`<span>${said.inQueue} <${QueueLink} name=${queue.name} title=${queue.title} from=${answer.namespace} /></span>`}
    ${position !== null && html`<span>${said.position(position, inLine)}</span>`}
    ${answer.localQueue && html`<span>${said.localQueue} <bdi>${answer.localQueue}</bdi></span>`}
    ${answer.priority !== null && html`<span>${said.priority(answer.priority)}${answer.priorityClass && html` (<bdi>${answer.priorityClass}</bdi>)`}</span>`}
    <span><${Link} path=${["namespace", answer.namespace]}>${said.allOf(answer.namespace)}<//></span>
  </p>`;
}

// The rule that binds, and what the person can do about it.
function Verdict({ answer }) {
  const look = answer.never ? "bad" : { Admitted: "good", Finished: "over", Gone: "over" }[answer.state] ?? "waits";
  const lacks = answer.controller && (answer.controller.state === "Absent" || answer.controller.state === "Partial");
  const ended = answer.jobEnd && answer.state !== "Finished";
  // What follows of one that runs has a section of its own.
  const sentences = answer.evicting || answer.state !== "Admitted" ? answer.sentences : answer.sentences.slice(0, Math.max(1, answer.holds.length));
  return html`<section class=${`verdict ${look}`} aria-label=${said.why}>
    ${sentences.map((line, index) => html`<p key=${index} class=${index === 0 ? "first" : ""} dir="auto">${line}</p>`)}
    ${answer.sentences.length === 0 && html`<p class="first">${answer.state === "Gone" ? said.wasHere : answer.complete ? said.nothingSaid : said.notLookedAt}</p>`}
    ${ended && html`<p dir="auto">${said.jobEnded(answer.jobEnd, answer.jobEndMessage)}</p>`}
    ${answer.advice && html`<p class="advice">${answer.advice}</p>`}
    ${answer.hints.map((hint) => html`<p key=${hint} class="hint" dir="auto">${hint}</p>`)}
    ${lacks && html`<p class="lacks">${answer.controller.message}</p>`}
    ${!answer.complete && html`<p class="quiet" role="status">${said.moreComes}</p>`}
  </section>`;
}

function Ahead({ answer }) {
  const [all, setAll] = useState(false);
  const { ahead, moreAhead, queue } = answer;
  const shown = all ? ahead : ahead.slice(0, MOST_AHEAD);
  return html`<section><h2>${said.ahead.title(ahead.length + moreAhead)}</h2>
    ${ahead.length === 0 ? html`<${Empty}>${said.ahead.none}<//>` : html`<ol class="ahead">
      ${shown.map((each, index) => html`<li key=${index}><${Other} other=${each} /> ${each.visible && html`<span class="quiet">${said.priority(each.priority)}</span>`}</li>`)}</ol>`}
    ${shown.length < ahead.length && html`<button type="button" onClick=${() => setAll(true)}>${said.more(ahead.length - shown.length)}</button>`}
    ${moreAhead > 0 && shown.length === ahead.length && queue && html`<p><${QueueLink} name=${queue.name} title=${said.ahead.more(moreAhead)} from=${answer.namespace} /></p>`}
  </section>`;
}

// What it holds or held, and how long it may.
function Quota({ answer }) {
  const { holds, held, runTime, readiness, resize, checkpoint, taken } = answer;
  const back = holds.reduce((sum, each) => sum + each.admitted - each.count, 0);
  const found = [
    ...[...holds, ...held].map((each) => [holds.length > 0 ? said.quota.holds : said.quota.held, html`<${Holding} each=${each} several=${holds.length + held.length > 1} />`]),
    back > 0 && [said.quota.givenBack, said.quota.back(back)],
    resize && [said.quota.pods, resize.words],
    answer.expectedEnd && [said.quota.expectedEnd, html`<${Time} at=${answer.expectedEnd} now=${taken} /> (${within(answer.expectedEnd, taken)})`],
    runTime?.deadline && [said.quota.deadline, html`<${Time} at=${runTime.deadline} now=${taken} /> (${runTime.limit})${runTime.requeues ? `; ${said.quota.requeues}` : ""}`],
    runTime?.used > 0 && [said.quota.used, span(runTime.used)],
    readiness?.attempts > 0 && [said.quota.attempts, said.quota.times(readiness.attempts)],
    readiness?.gaveUp && [said.quota.gaveUp, readiness.gaveUp],
    checkpoint && [said.quota.checkpoint, html`<${Time} at=${checkpoint} now=${taken} kind="ago" />`],
  ].filter(Boolean);
  if (found.length === 0) return null;
  return html`<section><h2>${said.quota.title}</h2>
    <dl class="quota">${found.map(([name, value], index) => html`<div key=${index}><dt>${name}</dt><dd dir="auto">${value}</dd></div>`)}</dl></section>`;
}

function Holding({ each, several }) {
  return html`${several && html`<bdi>${each.podSet}</bdi>: `}${each.usage.length === 0 && said.quota.nothing}
    ${each.usage.map(({ resource, flavor, amount }, index) => html`<span key=${resource}>${index > 0 && ", "}<strong>${amount.words}</strong> <bdi>${resource}</bdi> ${said.quota.of} <bdi>${flavor}</bdi></span>`)}
    ${" "}${said.quota.forPods(each.count, each.of)}`;
}

function Commands({ commands }) {
  return html`<section class="commands"><h2>${said.commands.title}</h2>
    <ul>${commands.map(({ what, command }) => html`<li key=${what}><span class="quiet small">${said.commands[what]}</span><${Command}>${command}<//></li>`)}</ul></section>`;
}
