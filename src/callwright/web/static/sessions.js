// The sessions page: every conversation of the project, those that wait for an answer first.
import { html, useState } from "./vendor.js";
import { post } from "./api.js";
import { go, loadStyle, sessionPath } from "./app.js";
import { Empty } from "./page_parts.js";
import { Problem, useModule } from "./parts.js";
import { STATES, useSessions } from "./session_list.js";
import { DAY, YEAR, ago, count, many, show, when } from "./text.js";

const loadRuns = () => Promise.all([import("./runs.js"), loadStyle("cards.css")]).then(([module]) => module);
const URGENT = { waiting: 0, paused: 1, running: 2, idle: 3, ended: 4 };

export default function Sessions({ server }) {
  const { sessions, error, load } = useSessions();
  const [filter, setFilter] = useState("");
  const { Runs, failed } = useModule(loadRuns, Boolean(server?.runs));
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = (sessions || []).filter((session) => words.every((word) => (session.title + " " + session.id).toLowerCase().includes(word)));
  const open = found.filter((session) => session.state !== "ended").sort((one, other) => URGENT[one.state] - URGENT[other.state] || other.updated_at - one.updated_at);
  const groups = Object.entries(Object.groupBy(found.filter((session) => session.state === "ended"), (session) => dayOf(session.updated_at)));
  return html`<div class="page">
    <div class="head"><h1>Sessions</h1><span class="muted">${sessions ? count(sessions.length) : ""}</span><span class="space"></span>
      <input type="search" placeholder="Filter by title" aria-label="Filter sessions by title" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></div>
    ${!server?.read_only && html`<${Start} model=${server?.model} />`}
    <${Problem} error=${error || failed} retry=${load} />
    ${Runs && html`<${Runs} readOnly=${server.read_only} />`}
    ${sessions && !sessions.length && !error && html`<${Empty} title="No sessions in this project">Run <code>callwright</code> in ${show(server?.project || "the project")} and this page shows it as it works.</${Empty}>`}
    ${sessions?.length > 0 && !found.length && html`<${Empty} title="No title contains these words"><a href=${`/search?q=${encodeURIComponent(filter)}`}>Search inside the conversations</a></${Empty}>`}
    ${open.length > 0 && html`<section aria-label="Open sessions"><h2>Open</h2><ul class="cards">${open.map((session) => html`<${Row} session=${session} />`)}</ul></section>`}
    ${groups.map(([day, members]) => html`<section aria-label=${day}><h2>${day}</h2><ul class="cards">${members.map((session) => html`<${Row} session=${session} />`)}</ul></section>`)}
  </div>`;
}

function Row({ session }) {
  return html`<li key=${session.id}><a class="card-row" href=${sessionPath(session.id)}>
    <span class=${"dot " + session.state} aria-hidden="true"></span>
    <span class="title">${show(session.title || "untitled")}</span>
    ${session.state !== "ended" && html`<span class=${"state " + session.state}>${STATES[session.state] || show(session.state)}${session.where ? html` <span class="muted">· ${show(session.where)}</span>` : ""}</span>`}
    <span class="muted num">${many(session.records, "record")}</span>
    <time class="muted num" title=${when(session.updated_at)}>${ago(session.updated_at)}</time></a></li>`;
}

function Start({ model }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const start = async (event) => {
    event.preventDefault();
    if (!text.trim() || busy) return;
    setBusy(true);
    try {
      const answer = await post("say", { session: null, text });
      go(sessionPath(answer.session));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  if (model === undefined) return null;
  return html`<form class="start" onSubmit=${start}>
    <input aria-label="Start a session: what should be done?" placeholder=${model ? "What should be done?" : "No model is configured: sessions can be watched, not started"} disabled=${!model}
      value=${text} onInput=${(event) => setText(event.target.value)} />
    <button class="primary" disabled=${!model || !text.trim() || busy}>${busy ? "Starting…" : "Start"}</button>
    <${Problem} error=${error} /></form>`;
}

function dayOf(at, now = Date.now() / 1000) {
  const date = new Date(at * 1000);
  const today = new Date(now * 1000);
  const days = Math.round((new Date(today.toDateString()) - new Date(date.toDateString())) / 864e5);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return (date.getFullYear() === today.getFullYear() ? DAY : YEAR).format(date);
}
