// What calls do and what came of them and of their questions: frames, long text, diffs, outcomes, images.
import { html, useEffect, useState } from "./vendor.js";
import { blob, get } from "./api.js";
import { count, duration, many, oneLine, plain, show, tokens } from "./text.js";

const LINES = 14;
const CHARACTERS = 4000;
const MOST = 200_000;

/** Monospaced text, folded when it is long; a line of megabytes does not reach the layout unasked. */
export function LongText({ text, label = "text", lines = LINES, kind = "" }) {
  const [open, setOpen] = useState(null);
  text = String(text ?? "").replace(/\r\n/g, "\n");
  const total = countLines(text);
  const long = total > lines || text.length > CHARACTERS;
  let shown = text;
  if (long && !open) shown = firstLines(text, lines).slice(0, CHARACTERS);
  else if (text.length > MOST) shown = text.slice(0, MOST);
  const left = text.length - shown.length;
  return html`<div class="long">
    <pre class=${"code " + kind} tabindex="0" role="group" aria-label=${label}>${show(shown)}${left > 0 && open ? `\n… ${count(left)} more characters` : ""}</pre>
    ${long && html`<${Fold} open=${open} setOpen=${setOpen} whole=${total > lines ? many(total, "line") : count(text.length) + " characters"} />`}
  </div>`;
}

/** The button that shows the whole of a folded part, and folds it again; `open` is null until it was open once. */
function Fold({ open, setOpen, whole }) {
  return html`<button class=${"quiet more" + (open === null ? " unread" : "")} onClick=${() => setOpen(!open)} aria-expanded=${Boolean(open)}>${open ? "Show less" : `Show all ${whole}`}</button>`;
}

function countLines(text) {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

function firstLines(text, lines) {
  let at = -1;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf("\n", at + 1);
    if (next < 0) return text;
    at = next;
  }
  return text.slice(0, at);
}

const DIFF_ROWS = 60;
const MOST_ROWS = 5000;

/** A preview or a diff, with the old and the new line numbers. */
export function Preview({ preview }) {
  const [open, setOpen] = useState(null);
  if (!preview) return null;
  if (preview.kind !== "diff") return html`<${LongText} text=${preview.text} label="preview" />`;
  const rows = open ? preview.rows.slice(0, MOST_ROWS) : preview.rows.slice(0, DIFF_ROWS);
  const added = preview.rows.filter((row) => row.mark === "+").length;
  const removed = preview.rows.filter((row) => row.mark === "-").length;
  const fresh = !preview.rows.some((row) => row.old); // a new file has no old line numbers
  return html`<figure class=${"diff" + (fresh ? " fresh" : "")}>
    <figcaption><span class="path">${show(preview.path)}</span>${preview.new && html`<span class="tag">new file</span>`}
      <span class="space"></span><span class="plus">+${added}</span> <span class="minus">−${removed}</span></figcaption>
    ${preview.note && html`<p class="note">${show(preview.note)}</p>`}
    <div class="wide" tabindex="0" role="group" aria-label=${`changes of ${plain(preview.path)}`}>
      <table><tbody>${rows.map((row) => html`<${DiffRow} row=${row} />`)}</tbody></table>
    </div>
    ${open && preview.rows.length > MOST_ROWS && html`<p class="note warning">${many(preview.rows.length - MOST_ROWS, "further line")} not shown</p>`}
    ${preview.rows.length > DIFF_ROWS && html`<${Fold} open=${open} setOpen=${setOpen} whole=${many(preview.rows.length, "line")} />`}
  </figure>`;
}

const MARKS = { "+": ["add", "added"], "-": ["del", "removed"], "@": ["skip", ""] };

function DiffRow({ row }) {
  const [kind, spoken] = MARKS[row.mark] || ["", ""];
  if (kind === "skip") return html`<tr class="skip"><td colspan="4">${show(row.text)}</td></tr>`;
  return html`<tr class=${kind}><td class="no">${row.old ?? ""}</td><td class="no">${row.new ?? ""}</td>
    <td class="mark">${row.mark.trim() && html`<span aria-hidden="true">${row.mark === "-" ? "−" : row.mark}</span><span class="sr">${spoken}</span>`}</td>
    <td class="line">${show(row.text)}${row.text === "" ? " " : ""}</td></tr>`;
}

/** An image of the record, fetched with the token and shown as a blob. */
function Picture({ url, type }) {
  const [source, setSource] = useState(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let address = "";
    let ended = false;
    blob(url).then(
      (data) => {
        if (ended) return;
        address = URL.createObjectURL(data);
        setSource(address);
      },
      (failure) => setError(failure.message),
    );
    return () => {
      ended = true;
      if (address) URL.revokeObjectURL(address);
    };
  }, [url]);
  if (error) return html`<p class="note bad">The image cannot be shown: ${show(error)}</p>`;
  return source ? html`<img class="picture" src=${source} alt=${`image (${plain(type)})`} />` : html`<div class="picture wait"></div>`;
}

/** Parts of a message or an outcome that are not text. */
export function Attachments({ parts }) {
  return (parts || []).map((part) => {
    if (part.type === "image") return html`<${Picture} url=${part.url} type=${part.media_type} />`;
    if (part.type === "file") return html`<p class="note">${show(part.name || "file")} · ${show(part.media_type)} · ${many(part.size, "byte")}</p>`;
    return null;
  });
}

/** What came of a call, as the model reads it. */
export function Outcome({ outcome, session }) {
  const [whole, setWhole] = useState(null);
  const [error, setError] = useState("");
  const text = whole ?? outcome.text;
  const load = () => get("output", { id: session, output: outcome.output_id }).then((found) => setWhole(found.text), (failure) => setError(failure.message));
  return html`<div class=${"outcome " + (outcome.ok ? "" : "failed")}>
    ${!outcome.ok && html`<p class="verdict bad">${show(outcome.code.replaceAll("_", " ") || "failed")}</p>`}
    ${outcome.diff && html`<${Preview} preview=${outcome.diff} />`}
    ${text && !(outcome.ok && outcome.diff) && html`<${LongText} text=${text} label=${"output of " + plain(outcome.name)} />`}
    ${outcome.cut > 0 && whole === null && html`<p class="note">${count(outcome.cut)} characters are left out.
      ${outcome.output_id && session && html`<button class="quiet" onClick=${load}>Load the whole output</button>`} ${error}</p>`}
    <${Attachments} parts=${outcome.parts} />
    ${outcome.repairs?.length > 0 && html`<p class="note">Repaired: ${show(outcome.repairs.join("; "))}</p>`}
  </div>`;
}

export function outcomeFacts(outcome) {
  const facts = [];
  if (outcome.seconds !== null && outcome.seconds !== undefined && outcome.started !== false) facts.push(duration(outcome.seconds));
  if (outcome.attempts > 1) facts.push(many(outcome.attempts, "attempt"));
  if (outcome.tokens) facts.push(tokens(outcome.tokens) + " tokens");
  return facts.join(" · ");
}

const BY = { page: "on a page", terminal: "in the terminal", editor: "in the editor" };
const SCOPES = { once: "once", session: "for this session", always: "always" };

/** How a question ended, in words. */
export function describeSettled(settled) {
  const what = settled.approved ? `Allowed ${SCOPES[settled.scope] || settled.scope || "once"}` : "Declined";
  return what + (settled.edited ? ", with changed arguments" : "") + (settled.by ? ` ${BY[settled.by] || "by " + plain(settled.by)}` : "") + (settled.reason ? `: ${plain(settled.reason)}` : "");
}

export const TELLING = ["command", "path", "url", "file_path", "pattern"];

/** What a question is about, on one line. */
export function subjectOf(question) {
  const key = TELLING.find((name) => typeof question.arguments?.[name] === "string");
  return key ? `${question.tool} ${oneLine(question.arguments[key], 100)}` : oneLine(question.summary || question.tool, 120);
}

const GLYPHS = { good: "✓", bad: "✕", run: "◌", wait: "⧗", ask: "?", none: "·" };
const STATE_WORDS = { good: "completed", bad: "failed", run: "running", wait: "waiting", ask: "waits for an answer", none: "not run" };

/** A call on one line; opened, its arguments and what came of it. */
export function CallFrame({ id, name, summary, values, preview, outcome, run, session, asks, talk }) {
  const state = outcome ? (outcome.ok ? "good" : "bad") : asks ? "ask" : run ? (run.state === "waiting" ? "wait" : "run") : "none";
  const [open, setOpen] = useState(null);
  const shown = open ?? (outcome && (!outcome.ok || Boolean(outcome.diff) || preview?.kind === "diff"));
  const line = summaryLine(name, summary, values);
  return html`<div class=${"call " + state} data-call=${id}>
    <button class="call-line" aria-expanded=${Boolean(shown)} onClick=${() => setOpen(!shown)}>
      <span class=${"glyph " + state} aria-hidden="true">${GLYPHS[state]}</span><span class="sr">${STATE_WORDS[state]}</span>
      <b>${show(name)}</b> <span class="target">${show(line)}</span>
      <span class="facts">${outcome ? outcomeFacts(outcome) : run ? html`<${Doing} run=${run} talk=${talk} />` : asks ? "waits for your answer" : ""}</span>
    </button>
    ${run?.text && !outcome && html`<pre class="progress">${show(String(run.text).slice(-600))}</pre>`}
    ${shown && html`<div class="call-body">
      ${values && !(outcome?.diff || preview) && html`<${Values} values=${values} />`}
      ${outcome ? html`<${Outcome} outcome=${outcome.diff || !preview || !outcome.ok ? outcome : { ...outcome, diff: preview }} session=${session} />` : preview && html`<${Preview} preview=${preview} />`}
    </div>`}
  </div>`;
}

function Doing({ run, talk }) {
  const nameOf = (id) => [...talk.items.values()].flatMap((item) => item.parts || []).findLast((part) => part.type === "call" && part.id === id)?.name || id;
  if (run.state === "waiting") return run.on?.length ? html`waits for ${show(run.on.map(nameOf).join(", "))}` : "waits for a free place";
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
