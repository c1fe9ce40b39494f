// How each record of a session looks.
import { html } from "./vendor.js";
import { GrowingMarkdown, Markdown } from "./markdown.js";
import { clock, many, oneLine, show, when } from "./text.js";

const LONG = 4000;
const CALLS = ["answered", "ended", "outcomes"];

/** Whether drawing a record takes what a plain conversation does not have: calls, files, long text. */
export function needsCalls(item) {
  return CALLS.includes(item.kind) || Boolean(item.parts?.some((part) => !/^(text|thinking)$/.test(part.type) || (item.kind === "user" && part.text.length > LONG)));
}

/** One record; null for those that only matter to the runtime. `calls` is the module of that name, once it is there. */
export function Record({ item, talk, session, calls }) {
  if (!calls.CallFrame && needsCalls(item)) return html`<div class="ghost">${calls.failed}</div>`;
  const faded = item.rewound ? " rewound" : "";
  switch (item.kind) {
    case "user":
      return html`<article class=${"msg user" + faded} aria-label=${item.automatic ? "automatic message" : "you"}>
        <${Who} name=${item.automatic ? "automatic" : "you"} at=${item.at} />
        <div class="body">${item.parts.map((part) => part.type === "text" && (part.text.length > LONG ? html`<${calls.LongText} text=${part.text} label="message" lines=${40} kind="prose" />` : html`<${Markdown} text=${part.text} />`))}${calls.Attachments && html`<${calls.Attachments} parts=${item.parts} />`}</div></article>`;
    case "assistant":
      return html`<article class=${"msg model" + faded} aria-label="model"><${Who} name=${item.model || "model"} at=${item.at} />
        <div class="body">${item.parts.map((part) => html`<${Part} part=${part} talk=${talk} position=${item.position} session=${session} calls=${calls} />`)}</div></article>`;
    case "answered":
      return html`<div class=${"line" + faded}>${Object.entries(item.replies).map(([id, reply]) => {
        const question = talk.asked.get(id);
        return html`<p class=${reply.approved ? "good" : "bad"}><span class="glyph" aria-hidden="true">${reply.approved ? "✓" : "✕"}</span> ${calls.describeSettled(reply)}${question ? html`<span class="muted"> · ${show(calls.subjectOf(question))}</span>` : ""}</p>`;
      })}</div>`;
    case "ended":
    case "outcomes":
      if (talk.owners.get(item.position)) return null;
      return (item.outcomes || [item.outcome]).map((outcome) => html`<div class=${"msg" + faded}><${calls.CallFrame} name=${outcome.name} outcome=${outcome} session=${session} summary="" /></div>`);
    case "compacted":
      return html`<details class="line divider"><summary>The conversation so far was summarised (${many(item.messages, "message")} kept)</summary><${Markdown} text=${item.summary} /></details>`;
    case "limit":
      return html`<p class="line warning">The run stopped at its limit of ${show(item.limit)}.</p>`;
    case "rewound":
      return html`<p class="line divider">${item.redo ? "An undo was taken back" : "Undone up to here"}${item.note ? html`: ${show(item.note)}` : ""}</p>`;
    case "damaged":
      return html`<p class="line warning">Record ${item.position} is damaged and was left out: ${show(item.fault)}</p>`;
    default:
      return null;
  }
}

function Who({ name, at }) {
  return html`<p class="who"><b>${show(name)}</b><time title=${when(at)}>${clock(at)}</time></p>`;
}

function Part({ part, talk, position, session, calls }) {
  if (part.type === "text") return html`<${Markdown} text=${part.text} />`;
  if (part.type === "thinking") return html`<${Thinking} text=${part.text} />`;
  if (part.type === "call") {
    const outcome = talk.calls.get(`${position}/${part.id}`) || (position >= talk.records - 40 ? talk.fresh.get(part.id) : undefined);
    return html`<${calls.CallFrame} id=${part.id} name=${part.name} summary=${part.summary} values=${part.arguments} preview=${part.preview} outcome=${outcome}
      run=${outcome ? null : talk.runs.get(part.id)} talk=${talk} session=${session} asks=${talk.questions.some((question) => question.call_id === part.id)} />`;
  }
  return null;
}

function Thinking({ text }) {
  if (!text.trim()) return null;
  return html`<details class="thinking"><summary>Thinking<span class="muted"> ${show(oneLine(text, 90))}</span></summary><${Markdown} text=${text} /></details>`;
}

/** The message that is being streamed. */
export function Growing({ partial }) {
  if (partial.done || !(partial.text || partial.thinking || partial.calls.length)) return null;
  return html`<article class="msg model growing" aria-label="model, writing"><p class="who"><b>model</b><span class="pulse">writing…</span></p>
    <div class="body">${partial.thinking && !partial.text && html`<p class="thinking-now">${show(partial.thinking.slice(-400))}</p>`}
      ${partial.text && html`<${GrowingMarkdown} text=${partial.text} />`}
      ${partial.calls.map((call) => html`<div class="call none"><p class="call-line"><span class="glyph run" aria-hidden="true">◌</span><b>${show(call.name)}</b> <span class="target">${show(oneLine(call.arguments.slice(-300), 160))}</span></p></div>`)}
    </div></article>`;
}
