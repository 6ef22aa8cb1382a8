// Plots over time: stacked areas by uPlot, with the same as a table; and sparklines.

import { html, useEffect, useRef } from "/lib/preact.js";
import { onScheme, value } from "/lib/colours.js";
import { clock, number } from "/lib/format.js";
import { words } from "/lib/words.js";

const TABLE_ROWS = 12;

let loading = null;
function library() {
  loading ??= new Promise((resolve) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = "/vendor/uplot.css";
    document.head.append(style);
    resolve(import("/vendor/uplot.js").then((module) => module.default));
  });
  return loading;
}

// Sums from the bottom up: what is drawn is the sum of a series and all below it. Where all are null there is a gap.
function stacked(series) {
  const sums = [];
  const known = (series[0]?.values ?? []).map((_, index) => series.some((each) => each.values[index] !== null));
  let below = known.map((there) => (there ? 0 : null));
  for (const each of series) {
    below = each.values.map((amount, index) => (known[index] ? (amount ?? 0) + below[index] : null));
    sums.push(below);
  }
  return sums;
}

// A colour is the number of one of --c0 to --c9, or the name of another variable without its dashes.
const property = (colour) => (typeof colour === "number" ? `--c${colour}` : `--${colour}`);

// times: seconds since the epoch; series: [{name, colour, values}] from the bottom up; limit: {name, values}
// drawn as a line; said: the plot in a sentence; format(value): an amount as text; steps: of the axis, if not decimal.
export function Stacked({ times, series, limit = null, said, format = number, steps = undefined, height = 180 }) {
  const box = useRef(null);
  const plot = useRef(null);
  const shown = useRef(null);
  shown.current = { times, series, limit };
  const names = series.map((each) => `${each.name}=${each.colour}`).join("\n") + (limit ? "\n+" : "");
  const data = () => {
    const { times: at, series: all, limit: line } = shown.current;
    return [at, ...stacked(all).reverse(), ...(line ? [line.values] : [])];
  };
  useEffect(() => {
    let gone = false;
    let unheard = () => undefined;
    let watching = null;
    library().then((UPlot) => {
      if (gone) return;
      const draw = () => {
        plot.current?.destroy();
        plot.current = new UPlot(options(shown.current, format, steps, box.current.clientWidth, height), data(), box.current);
      };
      draw();
      unheard = onScheme(draw);
      watching = new ResizeObserver(() => plot.current?.setSize({ width: box.current.clientWidth, height }));
      watching.observe(box.current);
    });
    return () => {
      gone = true;
      unheard();
      watching?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names]);
  useEffect(() => plot.current?.setData(data()), [times, series, limit]);
  return html`<figure class="plot"><div role="img" aria-label=${said} style=${{ minHeight: `${height}px` }} ref=${box}></div>
    <details><summary>${words.plot.asTable}</summary><${Numbers} times=${times} series=${series} limit=${limit} format=${format} said=${said} /></details></figure>`;
}

// How wide an axis of amounts is, in pixels, by its longest label.
const room = (_plot, labels) => Math.max(56, 18 + 7 * Math.max(0, ...(labels ?? []).map((label) => label.length)));

function options({ series, limit }, format, steps, width, height) {
  const text = value("--quiet");
  const grid = { stroke: value("--line"), width: 1 };
  const axis = { stroke: text, grid, ticks: grid, font: "12px system-ui" };
  const filled = [...series].reverse().map((each) => ({
    label: each.name, fill: value(property(each.colour)), stroke: value("--ground"), width: 1, points: { show: false },
  }));
  const line = limit ? [{ label: limit.name, stroke: value("--text"), width: 2, dash: [6, 4], points: { show: false } }] : [];
  return {
    width, height, legend: { show: false }, cursor: { y: false, points: { show: false } },
    scales: { y: { range: (_plot, _least, most) => [0, (most || 1) * 1.05] } },
    axes: [{ ...axis, space: 60, values: (_plot, splits) => splits.map(clock) }, { ...axis, size: room, incrs: steps, values: (_plot, splits) => splits.map(format) }],
    series: [{}, ...filled, ...line],
  };
}

function Numbers({ times, series, limit, format, said }) {
  const step = Math.max(1, Math.ceil(times.length / TABLE_ROWS));
  const shown = times.map((_, index) => index).filter((index) => (times.length - 1 - index) % step === 0);
  const all = limit ? [...series, limit] : series;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${said}><table><caption class="unseen">${said}</caption>
    <thead><tr><th scope="col">${words.plot.time}</th>${all.map((each) => html`<th scope="col" class="number" key=${each.name}><bdi>${each.name}</bdi></th>`)}</tr></thead>
    <tbody>${shown.map((index) => html`<tr key=${times[index]}><th scope="row">${clock(times[index])}</th>
      ${all.map((each) => html`<td class="number" key=${each.name}>${each.values[index] == null ? words.units.none : format(each.values[index])}</td>`)}</tr>`)}</tbody></table></div>`;
}

// A small line of values without axes; what it says stands in `said`.
export function Sparkline({ values, most = 0, said, width = 80, height = 20 }) {
  const top = Math.max(most, ...values, 1);
  const points = values.map((each, index) => [index, each]).filter(([, each]) => each !== null).map(([index, each]) =>
    `${((width * index) / Math.max(1, values.length - 1)).toFixed(1)},${(height - 1 - ((height - 2) * each) / top).toFixed(1)}`);
  return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="img" aria-label=${said}>
    ${values.length > 1 && html`<polyline points=${points.join(" ")} />`}</svg>`;
}
