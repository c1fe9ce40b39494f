// The costs page: money and tokens by day, model, tool and session, drawn as inline SVG.
import { html, useState } from "./vendor.js";
import { get } from "./api.js";
import { sessionPath } from "./app.js";
import { Empty, useLoad } from "./page_parts.js";
import { Problem } from "./parts.js";
import { count, duration, money, oneLine, plain, show, tokens } from "./text.js";

const SPANS = [7, 30, 90];
const HEIGHT = 180;

export default function Costs() {
  const [days, setDays] = useState(30);
  const [data, error, reload] = useLoad(() => get("costs", { days }), [days]);
  if (error) return html`<div class="page"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!data) return html`<p class="boot">Loading…</p>`;
  const total = data.days.reduce((sum, day) => sum + day.tokens, 0);
  return html`<div class="page"><div class="head"><h1>Costs</h1><span class="space"></span>
      <div class="switch" role="group" aria-label="Days">${SPANS.map((span) => html`<button aria-pressed=${span === days} onClick=${() => setDays(span)}>${span} days</button>`)}</div></div>
    ${!data.models.length && !data.tools.length ? html`<${Empty} title="No runs in these ${days} days">Costs appear after the first run; prices come from the model's price list.</${Empty}>` : html`
    <dl class="figures"><div><dt>spent</dt><dd>${money(data.total.usd)}</dd></div><div><dt>tokens</dt><dd>${tokens(total)}</dd></div>
      <div><dt>messages</dt><dd>${count(data.models.reduce((sum, model) => sum + model.messages, 0))}</dd></div><div><dt>calls</dt><dd>${count(data.tools.reduce((sum, tool) => sum + tool.calls, 0))}</dd></div></dl>
    ${data.total.unpriced_tokens > 0 && html`<p class="note gap">${tokens(data.total.unpriced_tokens)} tokens have no known price and are not in the sum.</p>`}
    <section><h2>By day</h2><${Days} days=${fill(data.days, days)} /></section>
    <section><h2>By model</h2><${Table} columns=${["model", "messages", "in", "out", "spent"]} rows=${data.models.map((model) => [html`<span class="mono">${show(model.model)}</span>`, count(model.messages), tokens(model.input_tokens), tokens(model.output_tokens), model.usd === null || (!model.usd && model.unpriced_tokens) ? "no price" : money(model.usd)])} /></section>
    <section><h2>By tool</h2><${Tools} tools=${data.tools} /></section>
    <section><h2>Dearest sessions</h2><${Table} columns=${["session", "tokens", "spent"]} rows=${data.sessions.slice(0, 12).map((session) => [html`<a href=${sessionPath(session.id)}>${show(oneLine(session.title || "untitled", 80))}</a>`, tokens(session.tokens), money(session.usd)])} /></section>`}
  </div>`;
}

/** Days without a run are part of the picture. */
function fill(days, span) {
  const known = new Map(days.map((day) => [day.day, day]));
  const filled = [];
  for (let back = span - 1; back >= 0; back--) {
    const date = new Date(Date.now() - back * 864e5);
    const key = [date.getFullYear(), String(date.getMonth() + 1).padStart(2, "0"), String(date.getDate()).padStart(2, "0")].join("-");
    filled.push(known.get(key) || { day: key, usd: 0, tokens: 0, models: {} });
  }
  return filled;
}

function Days({ days }) {
  const width = matchMedia("(max-width: 760px)").matches ? 330 : 960; // the letters keep their size on a phone
  const priced = days.some((day) => day.usd > 0);
  const of = (day) => (priced ? day.usd || 0 : day.tokens);
  const most = Math.max(...days.map(of)) || 1;
  const step = width / days.length;
  const top = nice(most);
  const mark = (value) => (priced ? money(value) : tokens(value));
  const best = days.reduce((one, other) => (of(other) > of(one) ? other : one), days[0]);
  return html`<div class="sheet pad"><svg class="chart" viewBox=${`0 0 ${width + 60} ${HEIGHT + 34}`} role="img" aria-label=${`${priced ? "Cost" : "Tokens"} per day; most on ${best.day}: ${mark(of(best))}`}>
    ${[0, 0.5, 1].map((part) => html`<line x1="0" x2=${width} y1=${HEIGHT - part * HEIGHT + 8} y2=${HEIGHT - part * HEIGHT + 8} class="grid" /><text x=${width + 8} y=${HEIGHT - part * HEIGHT + 12} class="tick">${mark(top * part)}</text>`)}
    ${days.map((day, place) => of(day) > 0 && html`<rect x=${place * step + step * 0.16} width=${step * 0.68} y=${HEIGHT + 8 - (of(day) / top) * HEIGHT} height=${Math.max(1.5, (of(day) / top) * HEIGHT)} rx="2" class="bar-fill"><title>${plain(`${day.day}: ${mark(of(day))}, ${tokens(day.tokens)} tokens`)}</title></rect>`)}
    ${days.map((day, place) => (days.length <= 7 || place % Math.ceil(days.length / (width / 160)) === 0) && html`<text x=${place * step + step / 2} y=${HEIGHT + 30} class="tick" text-anchor="middle">${day.day.slice(5)}</text>`)}
  </svg></div>`;
}

/** The next round number, for the top of the scale. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((round) => round >= value) || value;
}

function Tools({ tools }) {
  const slowest = Math.max(0.001, ...tools.map((tool) => tool.p95 || 0));
  return html`<${Table} columns=${["tool", "calls", "failed", "p50", "p95", "", "tokens"]} rows=${tools.map((tool) => [
    html`<a class="mono" href=${`/tools?name=${encodeURIComponent(tool.name)}`}>${show(tool.name)}</a>`, count(tool.calls), tool.failed ? html`<span class="bad">${count(tool.failed)}</span>` : "0", duration(tool.p50), duration(tool.p95),
    html`<svg class="spark" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect x="0" y="3" height="4" width=${Math.max(0.6, (100 * (tool.p95 || 0)) / slowest)} class="spark-95" /><rect x="0" y="1" height="8" width=${Math.max(0.6, (100 * (tool.p50 || 0)) / slowest)} class="bar-fill" /></svg>`, tokens(tool.tokens)])} />`;
}

function Table({ columns, rows }) {
  if (!rows.length) return html`<p class="note">none</p>`;
  return html`<div class="sheet wide" tabindex="0" role="group" aria-label=${"table by " + columns[0]}><table class="grid-table"><thead><tr>${columns.map((name, place) => html`<th scope="col" class=${place ? "num" : ""}>${name || html`<span class="sr">p50 and p95 as bars</span>`}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell, place) => html`<td class=${place ? "num" : ""}>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}
