// How each record of a session looks.
import { html, useState } from "/static/vendor.js";
import { GrowingMarkdown, Markdown } from "/static/markdown.js";
import { Attachments, LongText, Outcome, Preview, outcomeFacts } from "/static/outcome.js";
import { clock, many, oneLine, plain, show, when } from "/static/text.js";
import { describeSettled, subjectOf } from "/static/question.js";

/** One record; null for those that only matter to the runtime. */
export function Record({ item, talk, session }) {
  const faded = item.rewound ? " rewound" : "";
  switch (item.kind) {
    case "user":
      return html`<article class=${"msg user" + faded} aria-label=${item.automatic ? "automatic message" : "you"}>
        <${Who} name=${item.automatic ? "automatic" : "you"} at=${item.at} />
        <div class="body">${item.parts.map((part) => part.type === "text" && html`<${UserText} text=${part.text} />`)}<${Attachments} parts=${item.parts} /></div></article>`;
    case "assistant":
      return html`<article class=${"msg model" + faded} aria-label="model"><${Who} name=${item.model || "model"} at=${item.at} />
        <div class="body">${item.parts.map((part) => html`<${Part} part=${part} talk=${talk} position=${item.position} session=${session} />`)}</div></article>`;
    case "answered":
      return html`<div class=${"line" + faded}>${Object.entries(item.replies).map(([id, reply]) => {
        const question = talk.asked.get(id);
        return html`<p class=${reply.approved ? "good" : "bad"}><span class="glyph" aria-hidden="true">${reply.approved ? "✓" : "✕"}</span> ${describeSettled(reply)}${question ? html`<span class="muted"> · ${show(subjectOf(question))}</span>` : ""}</p>`;
      })}</div>`;
    case "ended":
    case "outcomes":
      if (talk.owners.get(item.position)) return null;
      return (item.outcomes || [item.outcome]).map((outcome) => html`<div class=${"msg" + faded}><${CallFrame} name=${outcome.name} outcome=${outcome} session=${session} summary="" /></div>`);
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

function UserText({ text }) {
  return text.length > 4000 ? html`<${LongText} text=${text} label="message" lines=${40} kind="prose" />` : html`<${Markdown} text=${text} />`;
}

function Part({ part, talk, position, session }) {
  if (part.type === "text") return html`<${Markdown} text=${part.text} />`;
  if (part.type === "thinking") return html`<${Thinking} text=${part.text} />`;
  if (part.type === "call") {
    const outcome = talk.calls.get(`${position}/${part.id}`) || (position >= talk.records - 40 ? talk.fresh.get(part.id) : undefined);
    return html`<${CallFrame} id=${part.id} name=${part.name} summary=${part.summary} values=${part.arguments} preview=${part.preview} outcome=${outcome}
      run=${outcome ? null : talk.runs.get(part.id)} session=${session} asks=${talk.questions.some((question) => question.call_id === part.id)} />`;
  }
  return null;
}

function Thinking({ text }) {
  if (!text.trim()) return null;
  return html`<details class="thinking"><summary>Thinking<span class="muted"> ${show(oneLine(text, 90))}</span></summary><${Markdown} text=${text} /></details>`;
}

const GLYPHS = { good: "✓", bad: "✕", run: "◌", wait: "⧗", ask: "?", none: "·" };
const STATE_WORDS = { good: "completed", bad: "failed", run: "running", wait: "waiting", ask: "waits for an answer", none: "not run" };

/** A call on one line; opened, its arguments and what came of it. */
function CallFrame({ id, name, summary, values, preview, outcome, run, session, asks }) {
  const state = outcome ? (outcome.ok ? "good" : "bad") : asks ? "ask" : run ? (run.state === "waiting" ? "wait" : "run") : "none";
  const [open, setOpen] = useState(null);
  const shown = open ?? (outcome && (!outcome.ok || Boolean(outcome.diff) || preview?.kind === "diff"));
  const line = summaryLine(name, summary, values);
  return html`<div class=${"call " + state} data-call=${id}>
    <button class="call-line" aria-expanded=${Boolean(shown)} onClick=${() => setOpen(!shown)}>
      <span class=${"glyph " + state} aria-hidden="true">${GLYPHS[state]}</span><span class="sr">${STATE_WORDS[state]}</span>
      <b>${show(name)}</b> <span class="target">${show(line)}</span>
      <span class="facts">${outcome ? outcomeFacts(outcome) : run ? html`<${Doing} run=${run} />` : asks ? "waits for your answer" : ""}</span>
    </button>
    ${run?.text && !outcome && html`<pre class="progress">${show(String(run.text).slice(-600))}</pre>`}
    ${shown && html`<div class="call-body">
      ${values && !(outcome?.diff || preview) && html`<${Values} values=${values} />`}
      ${outcome ? html`<${Outcome} outcome=${outcome.diff || !preview || !outcome.ok ? outcome : { ...outcome, diff: preview }} session=${session} />` : preview && html`<${Preview} preview=${preview} />`}
    </div>`}
  </div>`;
}

function Doing({ run }) {
  if (run.state === "waiting") return run.on?.length ? html`waits for ${show(run.on.join(", "))}` : "waits for a free place";
  return run.state === "retrying" ? "retrying" : "running";
}

/** The one argument that says most: the path, the command, the address, the pattern. */
function summaryLine(name, summary, values) {
  if (summary) return oneLine(summary.startsWith(name + " ") ? summary.slice(name.length + 1) : summary, 160);
  const telling = ["command", "path", "file_path", "pattern", "url", "query"].find((key) => typeof values?.[key] === "string");
  return telling ? oneLine(values[telling], 160) : values ? oneLine(values, 160) : "";
}

function Values({ values }) {
  if (typeof values === "string") return html`<${LongText} text=${values} label="arguments" lines=${8} />`;
  const entries = Object.entries(values);
  if (!entries.length) return html`<p class="note">no arguments</p>`;
  return html`<dl class="values">${entries.map(([key, value]) => html`<dt>${show(key)}</dt><dd>${typeof value === "string" && value.length < 100 && !value.includes("\n")
    ? html`<code>${show(value)}</code>` : html`<${LongText} text=${typeof value === "string" ? value : JSON.stringify(value, null, 1)} label=${plain(key)} lines=${8} />`}</dd>`)}</dl>`;
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
