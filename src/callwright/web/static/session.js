// The session page: the conversation as it happens, its open questions, its timeline, and what can be done with it.
import { html, useEffect, useRef, useState } from "/static/vendor.js";
import { download, get, post } from "/static/api.js";
import { go, isTyping } from "/static/app.js";
import { Conversation } from "/static/conversation.js";
import { WindowedList } from "/static/list.js";
import { Growing, Record } from "/static/messages.js";
import { Problem } from "/static/parts.js";
import { QuestionCard, describeSettled, subjectOf } from "/static/question.js";
import { STATES, useSessions } from "/static/sessions.js";
import { SessionSide } from "/static/timeline.js";
import { ago, many, oneLine, plain, show } from "/static/text.js";

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
  return html`<nav class="session-list" aria-label="Sessions">${(sessions || []).slice(0, 60).map((session) => html`<a href=${`/session?id=${encodeURIComponent(session.id)}`} aria-current=${session.id === current ? "true" : null}>
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
    const record = Record({ item, talk, session: detail.id });
    return record && html`<div class=${position === marked ? "marked" : ""}>${record}</div>`;
  };
  const tail = html`<${Growing} partial=${talk.partial} />
    ${[...talk.settled.values()].slice(-3).filter((settled) => !onRecord(talk, settled)).map((settled) => html`<p class=${"line " + (settled.approved ? "good" : "bad")} key=${"s" + settled.question}>
      <span class="glyph" aria-hidden="true">${settled.approved ? "✓" : "✕"}</span> ${settled.note ? show(settled.note) : describeSettled(settled)} <span class="muted">· ${show(subjectOf(settled.subject))}</span></p>`)}
    ${talk.questions.map((question, place) => html`<${QuestionCard} key=${question.id} question=${question} first=${place === 0} readOnly=${server?.read_only} onDone=${(settled) => talk.settle(settled)} />`)}
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

function Find({ id, onHit, onClose, scroller }) {
  const [text, setText] = useState("");
  const [hits, setHits] = useState(null);
  const [place, setPlace] = useState(0);
  const [error, setError] = useState("");
  useEffect(() => {
    if (!text.trim()) return void setHits(null);
    const abort = new AbortController();
    const timer = setTimeout(() => get("find", { id, q: text }, abort.signal).then((data) => {
      setError("");
      setHits(data);
      setPlace(data.hits.length - 1);
      if (data.hits.length) onHit(data.hits.at(-1).position);
    }, (failure) => failure.name === "AbortError" || setError(failure.message)), 120);
    return () => (clearTimeout(timer), abort.abort());
  }, [text, id]);
  useEffect(() => {
    if (!CSS.highlights) return;
    const timer = setInterval(() => mark(scroller.current?.box.current, text), 200);
    return () => (clearInterval(timer), CSS.highlights.delete("find"));
  }, [text]);
  const move = (step) => {
    if (!hits?.hits.length) return;
    const next = (place + step + hits.hits.length) % hits.hits.length;
    setPlace(next);
    onHit(hits.hits[next].position);
  };
  const onKey = (event) => {
    if (event.key === "Enter") (event.preventDefault(), move(event.shiftKey ? 1 : -1));
    if (event.key === "Escape") onClose();
  };
  return html`<div class="find" role="search"><input type="search" ref=${(element) => element && !element.dataset.on && ((element.dataset.on = "1"), element.focus())} value=${text}
      onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey} aria-label="Find in this session" placeholder="Find in this session" />
    <span class="num muted" role="status">${error ? show(error) : hits ? (hits.hits.length ? `${place + 1} of ${hits.hits.length}${hits.more ? "+" : ""}` : "not found") : ""}</span>
    <button onClick=${() => move(-1)} aria-label="Previous hit">↑</button><button onClick=${() => move(1)} aria-label="Next hit">↓</button><button onClick=${onClose} aria-label="Close find">✕</button></div>`;
}

/** Mark the words in what is drawn, without changing a node. */
function mark(root, text) {
  const wanted = text.trim().toLowerCase();
  if (!root || !wanted) return;
  const ranges = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < 500) {
    const node = walker.currentNode;
    const whole = node.data.toLowerCase();
    for (let from = whole.indexOf(wanted); from >= 0 && ranges.length < 500; from = whole.indexOf(wanted, from + wanted.length)) {
      const range = new Range();
      range.setStart(node, from);
      range.setEnd(node, Math.min(node.length, from + wanted.length));
      ranges.push(range);
    }
  }
  CSS.highlights.set("find", new Highlight(...ranges));
}

function Composer({ talk, server }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  const [undo, setUndo] = useState(null);
  const area = useRef(null);
  const { detail } = talk;
  const busy = detail.state === "running" || detail.state === "waiting";
  const act = (path, body, then) => post(path, { session: detail.id, ...body }).then((data) => (setError(null), then?.(data)), setError);
  if (server?.read_only) return html`<div class="composer"><p class="note">This page is read only.</p><${Export} detail=${detail} /></div>`;
  const send = (event) => {
    event?.preventDefault();
    if (text.trim()) act("say", { text }, (data) => (setText(""), data.queued && talk.notice("Queued: it is read when the current turn ends.")));
  };
  const onKey = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
    if (event.key === "Escape") area.current.blur();
  };
  return html`<div class="composer"><${Problem} error=${error} />
    ${undo && html`<${Undo} plan=${undo} onDo=${(overwrite) => act("undo", { position: undo.position, dry_run: false, ...(overwrite && { overwrite }) }, (done) => (setUndo(null), done.problems?.length && talk.notice(done.problems.join("; ")), talk.open(null)))} onClose=${() => setUndo(null)} />`}
    <form onSubmit=${send}><textarea ref=${area} rows="1" value=${text} aria-label="Say something to this session" placeholder=${detail.state === "ended" || detail.state === "paused" ? "Continue this session…" : "Say something…"}
        onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey}></textarea>
      <button class="primary" disabled=${!text.trim()}>Send</button></form>
    <div class="actions">
      ${busy && html`<button class="danger" onClick=${() => act("stop", {})}>Stop</button>`}
      ${detail.state === "paused" && !talk.questions.length && html`<button onClick=${() => act("resume", {})}>Resume</button>`}
      <button class="quiet" onClick=${() => act("fork", {}, (data) => go(`/session?id=${encodeURIComponent(data.session)}`))}>Fork</button>
      <button class="quiet" disabled=${busy} title=${busy ? "Stop the run first" : null} onClick=${() => act("undo", { position: null, dry_run: true }, (plan) => setUndo({ ...plan, position: null }))}>Undo</button>
      <${Export} detail=${detail} />
    </div></div>`;
}

function Export({ detail }) {
  const [error, setError] = useState(null);
  const save = () => download("export", { id: detail.id, format: "html" }, plain(detail.title || "session").replace(/[^\w-]+/g, "-").slice(0, 60) + ".html").catch(setError);
  return html`<button class="quiet" onClick=${save}>Export</button><${Problem} error=${error} />`;
}

function Undo({ plan, onDo, onClose }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  const clash = plan.conflicts?.length > 0;
  return html`<dialog ref=${dialog} onClose=${onClose} aria-label="Undo">
    <h2>Undo${plan.label ? html` “${show(oneLine(plan.label, 80))}”` : ""}?</h2>
    ${plan.conversation && html`<p>The conversation goes back to before this message.</p>`}
    ${plan.changes.length ? html`<ul class="plain">${plan.changes.map((change) => html`<li><span class="tag">${show(change.action)}</span> <code>${show(change.path)}</code></li>`)}</ul>` : html`<p>No file changes.</p>`}
    ${clash && html`<p class="warning">Changed since then, and overwritten by the undo: ${show(plan.conflicts.join(", "))}</p>`}
    ${plan.problems?.map((problem) => html`<p class="warning">${show(problem)}</p>`)}
    <div class="answers"><button class=${clash ? "danger" : "primary"} onClick=${() => onDo(clash)}>${clash ? "Undo and overwrite" : "Undo"}</button><button onClick=${() => dialog.current.close()}>Cancel</button></div></dialog>`;
}
