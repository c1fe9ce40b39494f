// The session page: the conversation as it happens, its open questions, its timeline, and what can be done with it.
import { html, useEffect, useRef, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { go, isTyping, loadStyle, sessionPath } from "./app.js";
import { Conversation } from "./conversation.js";
import { WindowedList } from "./list.js";
import { Growing, Record } from "./messages.js";
import { Problem, useModule } from "./parts.js";
import { STATES, useSessions } from "./session_list.js";
import { ago, many, money, oneLine, plain, show, tokens } from "./text.js";

// What a plain conversation never draws comes when it is needed.
const withStyle = (module) => Promise.all([module, loadStyle("cards.css")]).then(([found]) => found);
const loadCards = () => withStyle(import("./question.js"));
const loadCalls = () => withStyle(import("./calls.js"));
const loadTimeline = () => withStyle(import("./timeline.js"));
const loadDialogs = () => withStyle(import("./dialogs.js"));

export default function Session({ url, server }) {
  const id = url.searchParams.get("id") || "";
  const at = url.searchParams.has("at") ? Number(url.searchParams.get("at")) || 0 : null;
  const talk = useConversation(id, at);
  if (!talk) return html`<p class="boot">Loading…</p>`;
  return html`<div class="session-page"><${SessionList} current=${id} />
    ${talk.error
      ? html`<div class="page"><${Problem} error=${talk.error} retry=${() => talk.open(at)} /><p><a href="/">All sessions</a></p></div>`
      : talk.detail
        ? html`<${Talk} talk=${talk} server=${server} at=${at} key=${id} />`
        : html`<p class="boot">Loading…</p>`}</div>`;
}

function useConversation(id, at) {
  const [, draw] = useState(0);
  const talk = useRef(null);
  useEffect(() => {
    const mine = new Conversation(id, draw);
    talk.current = mine;
    mine.open(at);
    return () => mine.close();
  }, [id]);
  return talk.current?.id === id ? talk.current : null;
}

function SessionList({ current }) {
  const { sessions } = useSessions();
  const [wide, setWide] = useState(matchMedia("(min-width: 1180px)").matches);
  useEffect(() => {
    const query = matchMedia("(min-width: 1180px)");
    const update = () => setWide(query.matches);
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, []);
  if (!wide) return null;
  return html`<nav class="session-list" aria-label="Sessions">${(sessions || []).slice(0, 60).map((session) => html`<a href=${sessionPath(session.id)} aria-current=${session.id === current ? "true" : null}>
    <span class=${"dot " + session.state} aria-hidden="true"></span><span class="title">${show(oneLine(session.title || "untitled", 80))}</span>
    <span class="muted">${session.state === "waiting" || session.state === "paused" ? "waits for you" : session.state === "running" ? "running" : ago(session.updated_at)}</span></a>`)}</nav>`;
}

function Talk({ talk, server, at }) {
  const list = useRef(null);
  const [finding, setFinding] = useState(false);
  const [atEnd, setAtEnd] = useState(true);
  const [marked, setMarked] = useState(at);
  const [panel, setPanel] = useState(false);
  const { detail } = talk;
  const active = detail.state !== "ended";
  const { QuestionCard, failed } = useModule(loadCards, active || talk.questions.length > 0);
  const calls = useModule(loadCalls, active || talk.questions.length > 0 || talk.called);
  const jump = (position) => {
    setMarked(position);
    list.current.show(position);
  };
  useEffect(() => {
    if (at !== null) jump(Math.min(at, talk.records - 1));
  }, [at]);
  useEffect(() => {
    const onKey = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "f") {
        event.preventDefault();
        setFinding(true);
      } else if (event.key === "/" && !isTyping(event.target) && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        setFinding(true);
      } else if (event.key === "End" && !isTyping(event.target)) list.current.toEnd();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);

  const row = (position) => {
    const item = talk.items.get(position);
    if (!item) return html`<div class="ghost" aria-hidden="true"></div>`;
    const record = Record({ item, talk, session: detail.id, calls });
    return record && html`<div class=${position === marked ? "marked" : ""}>${record}</div>`;
  };
  const tail = html`<${Growing} partial=${talk.partial} />
    ${calls.CallFrame && [...talk.settled.values()].slice(-3).filter((settled) => !onRecord(talk, settled)).map((settled) => html`<p class=${"line " + (settled.approved ? "good" : "bad")} key=${"s" + settled.question}>
      <span class="glyph" aria-hidden="true">${settled.approved ? "✓" : "✕"}</span> ${settled.note ? show(settled.note) : calls.describeSettled(settled)} <span class="muted">· ${show(calls.subjectOf(settled.subject))}</span></p>`)}
    ${failed && talk.questions.length > 0 && html`<${Problem} error=${failed} />`}
    ${QuestionCard && talk.questions.map((question, place) => html`<${QuestionCard} key=${question.id} question=${question} first=${place === 0} readOnly=${server?.read_only} onDone=${(settled) => talk.settle(settled)} />`)}
    ${talk.notices.map((text) => html`<p class="line warning" role="status">${show(text)}</p>`)}`;
  return html`<section class="talk" aria-label="Conversation">
      <div class="talk-head"><h1>${show(oneLine(detail.title || "untitled", 140))}</h1>
        <span class=${"state " + detail.state}>${STATES[detail.state] || (detail.state === "ended" ? "ended" : show(detail.state))}${detail.where ? html` <span class="muted">· ${show(detail.where)}</span>` : ""}</span>
        <button class="quiet" onClick=${() => setFinding(!finding)} aria-expanded=${finding} aria-keyshortcuts="Control+F">Find</button>
        <button class="quiet only-narrow" onClick=${() => setPanel(!panel)} aria-expanded=${panel}>Details</button></div>
      ${finding && html`<${Find} id=${detail.id} onHit=${jump} onClose=${() => (setFinding(false), setMarked(null))} scroller=${list} />`}
      ${detail.damaged?.length > 0 && html`<p class="banner">${many(detail.damaged.length, "record")} of this session ${detail.damaged.length === 1 ? "is" : "are"} damaged and shown as such: ${show(detail.damaged.slice(0, 3).map((one) => `${one.position} (${one.fault})`).join(", "))}</p>`}
      <${WindowedList} rows=${talk.records} row=${row} tail=${tail} handle=${list} name=${detail.id} label="Messages" onEnd=${setAtEnd} onWindow=${(first, last) => talk.want(first, last)} />
      ${!atEnd && html`<div class="to-end-place"><button class="to-end" onClick=${() => list.current.toEnd()}>${talk.questions.length ? `${many(talk.questions.length, "question")} ↓` : "Newest ↓"}</button></div>`}
      <${Composer} talk=${talk} server=${server} />
    </section>
    <div class=${"side-wrap" + (panel ? " open" : "")}><${SessionSide} detail=${detail} talk=${talk} onCall=${(position, call) => (setPanel(false), jump(position), setTimeout(() => document.querySelector(`[data-call="${CSS.escape(call)}"]`)?.scrollIntoView({ block: "center" }), 250))} /></div>`;
}

/** The record says how a question ended as soon as it is stored; until then a line of our own does. */
function onRecord(talk, settled) {
  for (const item of talk.items.values()) if (item.kind === "answered" && item.replies[settled.question]) return true;
  return false;
}

/** The field is there at once: what is typed after Ctrl-F must not go anywhere else while the rest loads. */
function Find({ onClose, ...about }) {
  const [text, setText] = useState("");
  const keys = useRef(null);
  const { Hits, failed } = useModule(loadDialogs, true);
  return html`<div class="find" role="search"><input type="search" ref=${(element) => element && !element.dataset.on && ((element.dataset.on = "1"), element.focus())} value=${text}
      onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => (event.key === "Escape" ? onClose() : keys.current?.(event))} aria-label="Find in this session" placeholder="Find in this session" />
    ${Hits ? html`<${Hits} ...${about} text=${text} keys=${keys} onClose=${onClose} />` : failed}</div>`;
}

function Composer({ talk, server }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  const [undo, setUndo] = useState(null);
  const area = useRef(null);
  const { Undo } = useModule(loadDialogs, undo !== null);
  const { detail } = talk;
  const busy = detail.state === "running" || detail.state === "waiting";
  const act = (path, body, then) => post(path, { session: detail.id, ...body }).then((data) => (setError(null), then?.(data)), setError);
  if (server?.read_only) return html`<div class="composer"><p class="note">This page is read only.</p><${Export} detail=${detail} /></div>`;
  const send = (event) => {
    event?.preventDefault();
    if (!text.trim()) return;
    setText(""); // at once: a second Enter must not send it again
    const restore = (failure) => (setText((later) => text + later), setError(failure));
    post("say", { session: detail.id, text }).then((data) => (setError(null), data.queued && talk.notice("Queued: it is read when the current turn ends.")), restore);
  };
  const onKey = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
    if (event.key === "Escape") area.current.blur();
  };
  return html`<div class="composer"><${Problem} error=${error} />
    ${undo && Undo && html`<${Undo} plan=${undo} talk=${talk} act=${act} onClose=${() => setUndo(null)} />`}
    <form onSubmit=${send}><textarea ref=${area} rows="1" value=${text} aria-label="Say something to this session" placeholder=${detail.state === "ended" || detail.state === "paused" ? "Continue this session…" : "Say something…"}
        onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey}></textarea>
      <button class="primary" disabled=${!text.trim()}>Send</button></form>
    <div class="actions">
      ${busy && html`<button class="danger" onClick=${() => act("stop", {})}>Stop</button>`}
      ${detail.state === "paused" && !talk.questions.length && html`<button onClick=${() => act("resume", {})}>Resume</button>`}
      <button class="quiet" onClick=${() => act("fork", {}, (data) => go(sessionPath(data.session)))}>Fork</button>
      <button class="quiet" disabled=${busy} title=${busy ? "Stop the run first" : null} onClick=${() => act("undo", { position: null, dry_run: true }, setUndo)}>Undo</button>
      <${Export} detail=${detail} />
    </div></div>`;
}

function Export({ detail }) {
  const [error, setError] = useState(null);
  const save = () => loadDialogs().then(({ exportSession }) => exportSession(detail)).then(() => setError(null), setError);
  return html`<button class="quiet" onClick=${save}>Export</button><${Problem} error=${error} />`;
}

/** The side of a session: what it cost, its to-dos, and where the time of each turn went. */
function SessionSide({ detail, talk, onCall }) {
  const [turns, setTurns] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (talk.items.size >= talk.records && !talk.called) return void setTurns([]);
    let ended = false;
    const timer = setTimeout(() => get("timeline", { id: detail.id, turns: 20 }).then((data) => ended || (setTurns(data.turns), setError(null)), (failure) => ended || setError(failure)), turns ? 400 : 0);
    return () => ((ended = true), clearTimeout(timer));
  }, [detail.id, talk.records, detail.state]);
  const { Timeline, failed } = useModule(loadTimeline, Boolean(turns?.length));
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
      ${turns?.length > 0 && (Timeline ? html`<${Timeline} turns=${turns} onCall=${onCall} />` : failed && html`<p class="note bad">${failed}</p>`)}
    </section>
  </aside>`;
}
