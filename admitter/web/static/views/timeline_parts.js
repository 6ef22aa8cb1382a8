// What stands beside the picture of the timeline: a bar in words, the legend, what the forecast rests on, the table.

import { html } from "/lib/preact.js";
import { near, span } from "/lib/format.js";
import { Link, QueueLink, Time } from "/lib/parts.js";
import { words } from "/lib/words.js";

const said = words.timeline;
const MOST_ROWS = 500;
const CARD = 300; // pixels
const GAP = 8;
const SAME = 60; // seconds: a shorter range is told as one time

const isForecast = (bar) => bar.how === "forecast";

// From when to when, and which of that is only expected.
function times(bar, now) {
  const [from, to] = [near(bar.from, now), bar.to === null ? null : near(bar.to, now)];
  if (isForecast(bar)) return said.expected(from, to);
  if (bar.how !== "running") return said.range(from, to ?? near(now, now));
  return bar.to !== null && bar.to > now ? said.runs(from, to) : said.runs(from, null);
}

function ranges(bar, now) {
  const told = (range, spoken) => {
    if (range.earliest === null) return null;
    if (range.latest !== null && range.latest - range.earliest < SAME) return null;
    return spoken(near(range.earliest, now), range.latest === null ? null : near(range.latest, now));
  };
  return [told(bar.starts, said.startRange), bar.ends.known ? told(bar.ends, said.endRange) : null].filter(Boolean);
}

// Why it had to stop, or is expected to: the reason, for whom, and by which rule.
function stops(bar) {
  const { stop } = bar;
  if (!stop) return [];
  const ends = bar.how === "running" || bar.evicted > 0;
  const first = stop.expected ? said.willStop(stop.reason) : ends ? said.stopped(stop.reason) : stop.reason;
  const preempted = stop.reason === "Preempted";
  const whom = stop.name ? said.forWorkload(`${stop.namespace}/${stop.name}`) : preempted ? said.forHidden : "";
  return [`${first}${whom ? ` ${whom}` : ""}`, stop.rule].filter(Boolean);
}

// A bar as a sentence, for screen readers.
export function sentence(bar, now) {
  if (bar.joined > 1) return [said.joined(bar.joined), said.range(near(bar.from, now), near(bar.to, now)), bar.evicted ? said.joinedEvicted(bar.evicted) : ""].filter(Boolean).join(", ");
  return [`${bar.namespace}/${bar.name}`, `${said.queue} ${bar.queue}`, bar.flavors || said.none, said.pods(bar.pods), times(bar, now), said.how[bar.how], ...ranges(bar, now), ...stops(bar)].join(", ");
}

// What is known of a bar, near it.
export function Card({ bar, box, width, height, now, hovers, onClose }) {
  const left = Math.max(0, Math.min(box.left, width - Math.min(CARD, width)));
  const below = box.top + box.height < height / 2;
  const place = { left: `${left}px`, maxWidth: `${Math.min(CARD, width)}px`, ...(below ? { top: `calc(var(--axis) + ${Math.max(0, box.top + box.height) + GAP}px)` } : { bottom: `calc(100% - var(--axis) - ${Math.min(height, box.top) - GAP}px)` }) };
  return html`<div class=${hovers ? "timeline-card hovers" : "timeline-card"} style=${place}>
    ${bar.joined > 1 ? html`<p><strong>${said.joined(bar.joined)}</strong></p>
      <p>${said.range(near(bar.from, now), near(bar.to, now))}</p>
      ${bar.evicted > 0 && html`<p class="error">${said.joinedEvicted(bar.evicted)}</p>`}<p class="quiet">${said.zoomForMore}</p>`
      : html`<p><strong><bdi>${bar.namespace}</bdi>/<bdi>${bar.name}</bdi></strong></p>
      <p><span class="quiet">${said.queue}</span> <bdi>${bar.queue}</bdi> · <bdi>${bar.flavors || said.none}</bdi> · ${said.pods(bar.pods)}</p>
      <p>${times(bar, now)}${bar.to !== null && html` <span class="quiet">${said.lasted(span(bar.to - bar.from))}</span>`}</p>
      <p>${said.how[bar.how]}</p>
      ${ranges(bar, now).map((each) => html`<p class="quiet" key=${each}>${each}</p>`)}
      ${stops(bar).map((each, place) => html`<p class=${place ? "quiet" : "error"} key=${each}><bdi>${each}</bdi></p>`)}`}
    ${!hovers && html`<p>${bar.joined === 1 && html`<${Link} path=${["workload", bar.namespace, bar.name]}>${said.open}<//>`}
      <button type="button" onClick=${onClose} aria-label=${said.close}>×</button></p>`}
  </div>`;
}

// What is drawn how.
export function Legend({ known }) {
  const { legend } = said;
  const kinds = [["past", legend.past], ["future", legend.future], ["unsure", legend.unsure], ["evicted", legend.evicted], ["willstop", legend.willStop],
    ...(known.forecast.state === "there" ? [["beyond", legend.beyond]] : []),
    ...(known.others && Object.keys(known.others).length ? [["others", legend.others]] : []),
    ...(known.use ? [["use", legend.use(known.resource)]] : [])];
  return html`<ul class="legend timeline-legend" aria-label=${legend.title}>
    ${kinds.map(([kind, text]) => html`<li key=${kind}><span class=${`timeline-key ${kind}`} aria-hidden="true"></span>${text}</li>`)}</ul>`;
}

// On what the forecast rests, and how far it goes.
export function Rests({ forecast, now }) {
  const { forecast: spoken } = said;
  if (forecast.state !== "there") return html`<p class="small quiet" role="status">${forecast.state === "working" ? spoken.working : spoken.none}</p>`;
  const sources = Object.entries(forecast.sources).map(([source, count]) => spoken.source(source, count)).join(", ");
  const parts = [
    spoken.there(near(forecast.taken, now)), forecast.whole ? "" : spoken.partly(near(forecast.reached, now)), spoken.runs(forecast.told, forecast.runs),
    sources && spoken.sources(sources), forecast.unknown > 0 && spoken.unknown(forecast.unknown), forecast.unproven > 0 && spoken.unproven(forecast.unproven),
  ].filter(Boolean);
  return html`<p class="small quiet">${parts.join("; ")}. ${said.lateEdge}${forecast.others ? ` ${spoken.others}` : ""}</p>`;
}

// The bars of a range as a table.
export function Rows({ bars, range, now }) {
  const [from, to] = range;
  const there = bars.filter((bar) => bar.from < to && (bar.to ?? Infinity) > from).sort((one, other) => one.from - other.from);
  const shown = there.slice(0, MOST_ROWS);
  return html`<p class="small quiet" role="status">${said.tableOf(shown.length, there.length)}</p>
    <div class="scroll" tabindex="0" role="region" aria-label=${said.caption}><table class="timeline-table"><caption class="unseen">${said.caption}</caption>
    <thead><tr><th scope="col">${said.workload}</th><th scope="col">${said.queue}</th><th scope="col" class="optional">${said.flavors}</th>
      <th scope="col">${said.from}</th><th scope="col">${said.to}</th><th scope="col">${said.end}</th></tr></thead>
    <tbody>${shown.map((bar) => html`<tr key=${`${bar.lane} ${bar.key} ${bar.from}`}>
      <th scope="row">${bar.joined > 1 ? said.joined(bar.joined) : html`<${Link} path=${["workload", bar.namespace, bar.name]}>${bar.namespace}/${bar.name}<//>`}</th>
      <td>${bar.queue && html`<${QueueLink} name=${bar.queue} from=${bar.namespace} />`}</td><td class="optional"><bdi>${bar.flavors}</bdi> ${said.pods(bar.pods)}</td>
      <td data-title=${said.from}><${Time} at=${bar.from} now=${now} /></td>
      <td data-title=${said.to}>${bar.to === null ? said.unknownEnd : html`<${Time} at=${bar.to} now=${now} />`}</td>
      <td>${[said.how[bar.how], ...(bar.joined > 1 && bar.evicted ? [said.joinedEvicted(bar.evicted)] : []), ...ranges(bar, now), ...stops(bar)].filter(Boolean).map((each) => html`<div key=${each}><bdi>${each}</bdi></div>`)}</td>
    </tr>`)}</tbody></table></div>`;
}
