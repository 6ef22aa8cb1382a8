// What has to end before a workload starts, and when that and its own start are expected: on one time axis.

import { html } from "/lib/preact.js";
import { scale, ticks } from "/lib/axis.js";
import { near, span, whole } from "/lib/format.js";
import { Empty, Failure } from "/lib/parts.js";
import { Other } from "/views/workload_other.js";
import { words } from "/lib/words.js";

const said = words.workload.outlook;
const WIDTH = 100; // per cent
const TICKS = 4;
const LEAST_SECONDS = 60;

export function Outlook({ answer, outlook }) {
  const found = outlook.answer;
  if (answer.never) return html`<section class="outlook"><h2>${said.title}</h2><${Empty}>${said.never}<//></section>`;
  if (!found) {
    return html`<section class="outlook"><h2>${said.title}</h2>
      ${outlook.error ? html`<${Failure} error=${outlook.error} />` : html`<p class="quiet working" role="status">${said.working}</p>`}</section>`;
  }
  const { blocking, moreBlocking, start, taken } = found;
  const axis = axisOf(taken, blocking, start);
  return html`<section class="outlook"><h2>${said.title}</h2>
    ${start && html`<p class="start" dir="auto" role="status">${start.sentence}</p>`}
    ${!found.sought && html`<${Empty}>${said.notFound}<//>`}
    ${(axis !== null || blocking.length > 0) && html`<table class="ends">
      <caption>${found.preempting ? said.preempting : blocking.length > 0 ? said.blocking : said.ownStart}</caption>
      <thead><tr><th scope="col">${said.workload}</th><th scope="col" class="track-head">${axis ? html`<${Axis} axis=${axis} />` : said.ends}</th></tr></thead>
      <tbody>
        ${blocking.map((each, index) => html`<tr key=${index}><th scope="row"><${Other} other=${each} />
            ${each.visible && html`<div class="quiet small">${words.workload.priority(each.priority)}</div>`}</th>
          <td>${each.visible && html`${axis && html`<${Track} axis=${axis} to=${each.ends} kind=${each.ends === null ? "unknown" : "runs"} />`}
            <div class="small">${endOf(each, taken)}${each.notEvicted && !found.preempting && html`<span class="quiet"> ${said.notEvicted(each.notEvicted)}</span>`}</div>`}</td></tr>`)}
        ${start?.median != null && axis && html`<tr class="own"><th scope="row">${said.itself}</th>
          <td><${Range} axis=${axis} start=${start} /><div class="small">${rangeOf(start, taken)}</div></td></tr>`}
      </tbody></table>`}
    ${moreBlocking > 0 && html`<p class="quiet">${words.workload.more(moreBlocking)}</p>`}
    ${found.sought && blocking.length === 0 && !start && html`<${Empty}>${said.nothing}<//>`}
  </section>`;
}

function endOf(each, now) {
  if (each.extra > 0) return said.extra(each.extra, each.podSet);
  if (each.ends === null) return said.unknownEnd;
  const when = each.ends <= now ? said.anyMoment : said.endsAt(near(each.ends, now), span(each.ends - now));
  return each.unproven ? `${when} ${said.unproven}` : when;
}

function rangeOf(start, now) {
  const median = said.startsAt(near(start.median, now), span(start.median - now));
  if (start.latest === null) return `${median}; ${said.orLater}`;
  if (start.latest - start.earliest < 1) return median;
  return `${median}; ${said.between(near(start.earliest, now), near(start.latest, now))}`;
}

// From now to the last moment that is known; null: none is.
function axisOf(now, blocking, start) {
  const moments = [...blocking.map((each) => each.ends), start?.earliest, start?.median, start?.latest].filter((each) => each != null);
  if (moments.length === 0) return null;
  const to = now + Math.max(LEAST_SECONDS, 1.06 * (Math.max(...moments) - now));
  return { now, to, x: scale(now, to, WIDTH).x, ticks: ticks(now, to, TICKS) };
}

const at = (axis, time) => `${Math.max(0, Math.min(WIDTH, axis.x(time)))}%`;

function Axis({ axis }) {
  return html`<span class="unseen">${said.ends}</span><span class="axis" aria-hidden="true">
    ${axis.ticks.map((tick) => html`<span key=${tick.time} class=${axis.x(tick.time) > 88 ? "tick last" : "tick"} style=${{ left: at(axis, tick.time) }}>${tick.label}</span>`)}</span>`;
}

function Grid({ axis }) {
  return axis.ticks.map((tick) => html`<span key=${tick.time} class="line" style=${{ left: at(axis, tick.time) }}></span>`);
}

function Track({ axis, to, kind }) {
  const width = to === null ? "100%" : at(axis, Math.max(to, axis.now + (axis.to - axis.now) / 200));
  return html`<div class="track" aria-hidden="true" title=${to === null ? said.unknownEnd : whole(to)}><${Grid} axis=${axis} /><span class=${`span ${kind}`} style=${{ width }}></span></div>`;
}

function Range({ axis, start }) {
  const from = start.earliest ?? start.median;
  const to = start.latest ?? axis.to;
  const width = `${Math.max(0.8, axis.x(to) - axis.x(from))}%`;
  return html`<div class="track" aria-hidden="true"><${Grid} axis=${axis} />
    <span class=${start.latest === null ? "span range open" : "span range"} style=${{ left: at(axis, from), width }}></span>
    <span class="median" style=${{ left: at(axis, start.median) }}></span></div>`;
}
