// The side of a session: what it cost, its to-dos, and where the time of each turn went.
import { html, useEffect, useState } from "/static/vendor.js";
import { get } from "/static/api.js";
import { duration, money, plain, show, tokens } from "/static/text.js";

const KINDS = { ask: "waits for a person", wait: "waits for another call", run: "runs", retry: "waits to retry", model: "model" };

export function SessionSide({ detail, talk, onCall }) {
  const [turns, setTurns] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    let ended = false;
    const timer = setTimeout(() => get("timeline", { id: detail.id, turns: 20 }).then((data) => ended || (setTurns(data.turns), setError(null)), (failure) => ended || setError(failure)), turns ? 400 : 0);
    return () => ((ended = true), clearTimeout(timer));
  }, [detail.id, talk.records, detail.state]);
  const usage = detail.usage || {};
  return html`<aside class="side" aria-label="This session">
    <dl class="facts-grid">
      <div><dt>cost</dt><dd>${money(detail.cost?.usd)}</dd></div>
      <div><dt>tokens in</dt><dd>${tokens(usage.input_tokens)}</dd></div>
      <div><dt>tokens out</dt><dd>${tokens(usage.output_tokens)}</dd></div>
    </dl>
    ${detail.cost?.unpriced_tokens > 0 && html`<p class="note">${tokens(detail.cost.unpriced_tokens)} tokens have no known price.</p>`}
    <dl class="pairs"><dt>model</dt><dd>${show(detail.model || "none")}</dd><dt>mode</dt><dd>${show(detail.mode || "default")}</dd>
      ${usage.cache_read_tokens > 0 && html`<dt>from cache</dt><dd>${tokens(usage.cache_read_tokens)} tokens</dd>`}
      ${detail.pid ? html`<dt>process</dt><dd>${detail.pid}</dd>` : ""}</dl>
    ${detail.todos?.length > 0 && html`<section><h2>To do</h2><ul class="todos">${detail.todos.map((todo) => html`<li class=${todo.status}><span aria-hidden="true">${todo.status === "completed" ? "☑" : todo.status === "in_progress" ? "◧" : "☐"}</span><span class="sr">${plain(todo.status)}: </span> ${show(todo.text)}</li>`)}</ul></section>`}
    <section><h2>Timeline</h2>
      ${error && html`<p class="note bad">${show(error.message)}</p>`}
      ${turns && !turns.length && html`<p class="note">Turns with calls appear here.</p>`}
      ${turns?.slice().reverse().map((turn, place) => html`<${Turn} turn=${turn} number=${turns.length - place} onCall=${onCall} key=${turn.position} />`)}
      ${turns?.length > 0 && html`<p class="legend">${Object.entries(KINDS).map(([kind, name]) => html`<span><i class=${"bar " + kind}></i>${name}</span>`)}</p>`}
    </section>
  </aside>`;
}

/** The calls of one turn as bars on a common scale, after the time the model took. */
function Turn({ turn, number, onCall }) {
  const model = turn.model_seconds || 0;
  const ends = turn.calls.flatMap((call) => call.spans.map((span) => span.to));
  const total = Math.max(model + Math.max(0.001, ...ends), 0.001);
  const names = new Map(turn.calls.map((call) => [call.id, call.name]));
  const bar = (kind, from, to, title) => html`<i class=${"bar " + kind} title=${title}
    style=${{ left: (100 * from) / total + "%", width: Math.max(0.8, (100 * (to - from)) / total) + "%" }}></i>`;
  const waits = (span) => (span.kind === "wait" ? (span.on?.length ? "waits for " + span.on.map((id) => names.get(id) || id).join(", ") : "waits for a free place") : KINDS[span.kind] || span.kind);
  return html`<div class="turn">
    <p class="turn-head"><b>Turn ${number}</b><span class="num">${duration(total)}</span></p>
    <div class="track-row"><span class="name muted">model</span><span class="track">${bar("model", 0, model, `model: ${duration(model)}`)}</span></div>
    ${turn.calls.map((call) => html`<button class="track-row" onClick=${() => onCall(turn.position, call.id)}
        aria-label=${plain(`${call.name}: ` + call.spans.map((span) => `${waits(span)} ${duration(span.to - span.from)}`).join(", "))}>
      <span class="name">${show(call.name)}</span>
      <span class="track">${call.spans.map((span) => bar(span.kind, model + span.from, model + span.to, plain(`${waits(span)}: ${duration(span.to - span.from)}`)))}</span></button>
      ${call.spans.filter((span) => span.kind === "wait" && span.on?.length).map((span) => html`<p class="waits">${show(waits(span))} · ${duration(span.to - span.from)}</p>`)}`)}
  </div>`;
}
