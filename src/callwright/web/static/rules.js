// The rules page: every rule by layer, a tester, and what a draft rule would have changed.
import { html, useEffect, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { sessionPath } from "./app.js";
import { useLoad } from "./page_parts.js";
import { Problem, askLater } from "./parts.js";
import { many, oneLine, plain, show } from "./text.js";
import { Verdict } from "./verdict.js";

const LAYERS = { managed: "Managed by the organisation", "command line": "Command line", local: "This project, only you", project: "This project, shared", user: "You, every project" };

export default function Rules({ server }) {
  const [data, error, reload] = useLoad(() => get("rules"), []);
  if (error) return html`<div class="page"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!data) return html`<p class="boot">Loading…</p>`;
  const editable = !server?.read_only;
  return html`<div class="page wide-page">
    <div class="head"><h1>Rules</h1><span class="muted">mode <b>${show(data.mode)}</b>${data.mode_from !== "default" ? html` from ${show(data.mode_from)}` : ""}${data.trusted ? "" : " · the project is not trusted"}</span></div>
    ${[...data.problems, ...data.withheld].map((problem) => html`<p class="warning gap">${show(typeof problem === "string" ? problem : JSON.stringify(problem))}</p>`)}
    <div class="columns"><div><${Tester} />
      ${editable && html`<${Draft} onSaved=${reload} />`}</div>
    <div><h2>Rules in force</h2>${data.layers.map((layer) => html`<${Layer} layer=${layer} editable=${editable && layer.editable} onChanged=${reload} key=${layer.scope + layer.file} />`)}
      ${data.ignored.length > 0 && html`<section class="layer"><h3>Not applied</h3><ul class="plain rules">${data.ignored.map((rule) => html`<li><${Kind} kind=${rule.kind} /><code>${show(rule.rule)}</code><span class="muted">${show(rule.written_in)}</span></li>`)}</ul></section>`}</div></div>
  </div>`;
}

function Kind({ kind }) {
  return html`<span class=${"decision " + kind}>${show(kind)}</span>`;
}

function Layer({ layer, editable, onChanged }) {
  const [error, setError] = useState(null);
  const [asked, setAsked] = useState("");
  const remove = (rule) => post("rules/remove", { kind: rule.kind, rule: rule.rule, scope: layer.scope }).then(onChanged, setError);
  return html`<section class="layer"><h3>${LAYERS[layer.scope] || show(layer.scope)}</h3>
    <p class="file">${show(layer.file)}${layer.exists ? "" : " · no file yet"}${layer.why && html` · ${show(layer.why)}`}</p>
    ${layer.rules.length > 0 && html`<ul class="plain rules">${layer.rules.map((rule) => html`<li key=${rule.kind + rule.rule}><${Kind} kind=${rule.kind} /><code>${show(rule.rule)}</code>
      <span class="muted num">line ${rule.line}</span>
      ${editable && (asked === rule.kind + rule.rule ? html`<button class="danger" onClick=${() => remove(rule)}>Remove it</button>` : html`<button class="quiet" onClick=${() => setAsked(rule.kind + rule.rule)} aria-label=${`Remove ${plain(rule.rule)}`}>Remove</button>`)}
      ${rule.problem && html`<p class="warning">${show(rule.problem)}</p>`}</li>`)}</ul>`}
    ${!layer.rules.length && layer.exists && html`<p class="note">no rules</p>`}
    <${Problem} error=${error} /></section>`;
}

const TOOLS = ["bash", "read", "edit", "write", "delete", "web_fetch"];

function Tester() {
  const [tool, setTool] = useState("bash");
  const [argument, setArgument] = useState("");
  const [mode, setMode] = useState("");
  const [verdict, setVerdict] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (!argument.trim()) return void setVerdict(null);
    return askLater(150, (signal) => post("rules/test", { tool, argument, mode }, signal), (found) => (setVerdict(found), setError(null)), (failure) => (setVerdict(null), setError(failure)));
  }, [tool, argument, mode]);
  return html`<section><h2>Test a call</h2><div class="sheet pad stack">
    <div class="inline"><input class="mono tool-name" list="tool-names" aria-label="Tool" value=${tool} onInput=${(event) => setTool(event.target.value)} />
      <datalist id="tool-names">${TOOLS.map((name) => html`<option value=${name}></option>`)}</datalist>
      <select aria-label="Mode" value=${mode} onChange=${(event) => setMode(event.target.value)}><option value="">mode as set</option>${["default", "auto", "plan"].map((name) => html`<option value=${name}>${name}</option>`)}</select></div>
    <textarea class="mono" rows="2" spellcheck="false" aria-label="Argument: the command line, path or address" placeholder="git push --force" value=${argument} onInput=${(event) => setArgument(event.target.value)}></textarea>
    ${verdict ? html`<${Verdict} verdict=${verdict} />` : html`<p class="note">The decision, its reason and the deciding rule appear here. Nothing is run.</p>`}
    <${Problem} error=${error} /></div></section>`;
}

function Draft({ onSaved }) {
  const [kind, setKind] = useState("allow");
  const [rule, setRule] = useState("");
  const [scope, setScope] = useState("local");
  const [replay, setReplay] = useState(null);
  const [saved, setSaved] = useState("");
  const [error, setError] = useState(null);
  useEffect(() => {
    setReplay(null);
    setSaved("");
    if (!rule.trim()) return void setError(null);
    return askLater(400, (signal) => post("rules/replay", { kind, rule }, signal), (found) => (setReplay(found), setError(null)), setError);
  }, [kind, rule]);
  const save = (event) => {
    event.preventDefault();
    post("rules/save", { kind, rule, scope }).then((done) => (setSaved(done.file), setError(null), onSaved()), setError);
  };
  return html`<section class="gap-top"><h2>Draft a rule</h2><form class="sheet pad stack" onSubmit=${save}>
    <div class="inline"><select aria-label="Kind of rule" value=${kind} onChange=${(event) => setKind(event.target.value)}>${["allow", "ask", "deny"].map((name) => html`<option value=${name}>${name}</option>`)}</select>
      <input class="mono" aria-label="Rule" placeholder="Bash(npm test *)" value=${rule} onInput=${(event) => setRule(event.target.value)} /></div>
    ${replay ? html`<${Replay} replay=${replay} kind=${kind} />` : html`<p class="note">The draft is replayed over your past sessions before you save it.</p>`}
    <${Problem} error=${error} />
    <div class="inline"><select aria-label="Where to save" value=${scope} onChange=${(event) => setScope(event.target.value)}>${["local", "project", "user"].map((name) => html`<option value=${name}>${LAYERS[name]}</option>`)}</select>
      <button class="primary" disabled=${!rule.trim()}>Save</button></div>
    ${saved && html`<p class="note good" role="status">Saved in ${show(saved)}</p>`}</form></section>`;
}

function Replay({ replay, kind }) {
  const other = replay.changed.length;
  return html`<div class="replay" role="status">
    <p>Over ${many(replay.sessions, "session")} with ${many(replay.calls, "call")}, this rule would have answered <b>${replay.answered} of ${many(replay.questions, "question")}</b>${other ? html` and changed <b>${many(other, "other decision")}</b>.` : `, and ${kind === "deny" ? "denied" : kind === "ask" ? "asked about" : "allowed"} nothing else.`}</p>
    ${replay.declined > 0 && kind === "allow" && html`<p class="warning">You declined ${replay.declined} of these.</p>`}
    ${replay.problems.map((problem) => html`<p class="warning">${show(problem)}</p>`)}
    ${other > 0 && html`<ul class="plain rules">${replay.changed.slice(0, 40).map((change) => html`<li><${Kind} kind=${change.before} /><span class="muted">→</span><${Kind} kind=${change.after} />
      <a href=${sessionPath(change.session, change.position)}><code>${show(change.tool)} ${show(oneLine(change.line, 90))}</code></a></li>`)}</ul>${other > 40 && html`<p class="note">and ${other - 40} more</p>`}`}
  </div>`;
}
