// Where the time of each turn went.
import { html } from "./vendor.js";
import { clock, duration, plain, show } from "./text.js";

const KINDS = { ask: "waits for a person", wait: "waits for another call", run: "runs", retry: "waits to retry", model: "model" };

export function Timeline({ turns, onCall }) {
  return html`${turns.slice().reverse().map((turn) => html`<${Turn} turn=${turn} onCall=${onCall} key=${turn.position} />`)}
    <p class="legend">${Object.entries(KINDS).map(([kind, name]) => html`<span><i class=${"bar " + kind}></i>${name}</span>`)}</p>`;
}

/** The calls of one turn as bars on a common scale, after the time the model took. */
function Turn({ turn, onCall }) {
  const model = turn.model_seconds || 0;
  const ends = turn.calls.flatMap((call) => call.spans.map((span) => span.to));
  const total = Math.max(model + Math.max(0.001, ...ends), 0.001);
  const names = new Map(turn.calls.map((call) => [call.id, call.name]));
  const bar = (kind, from, to, title) => html`<i class=${"bar " + kind} title=${title}
    style=${{ left: (100 * from) / total + "%", width: Math.max(0.8, (100 * (to - from)) / total) + "%" }}></i>`;
  const waits = (span) => (span.kind === "wait" ? (span.on?.length ? "waits for " + span.on.map((id) => names.get(id) || id).join(", ") : "waits for a free place") : KINDS[span.kind] || span.kind);
  return html`<div class="turn">
    <p class="turn-head"><b>Turn ${turn.number ?? `at ${clock(turn.began)}`}</b><span class="num">${duration(total)}</span></p>
    <div class="track-row"><span class="name muted">model</span><span class="track">${bar("model", 0, model, `model: ${duration(model)}`)}</span></div>
    ${turn.calls.map((call) => html`<button class="track-row" onClick=${() => onCall(turn.position, call.id)}
        aria-label=${plain(`${call.name}: ` + call.spans.map((span) => `${waits(span)} ${duration(span.to - span.from)}`).join(", "))}>
      <span class="name">${show(call.name)}</span>
      <span class="track">${call.spans.map((span) => bar(span.kind, model + span.from, model + span.to, plain(`${waits(span)}: ${duration(span.to - span.from)}`)))}</span></button>
      ${call.spans.filter((span) => span.kind === "wait" && span.on?.length).map((span) => html`<p class="waits">${show(waits(span))} · ${duration(span.to - span.from)}</p>`)}`)}
  </div>`;
}
