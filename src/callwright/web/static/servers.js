// The servers page: the MCP servers of the project, their condition, tools and logs.
import { html, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { LongText } from "./calls.js";
import { Empty, useLoad } from "./page_parts.js";
import { Problem } from "./parts.js";
import { duration, many, plain, show } from "./text.js";

const GOOD = new Set(["ready"]);
const BAD = /fail|closed|error|broken|refused|damaged/;

export default function Servers({ server }) {
  const [data, error, reload] = useLoad(() => get("servers"), []);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(null);
  const connect = async () => {
    setBusy(true);
    await post("servers/connect", {}).then(() => setFailure(null), setFailure);
    await reload();
    setBusy(false);
  };
  if (error) return html`<div class="page"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!data) return html`<p class="boot">Loading…</p>`;
  return html`<div class="page"><div class="head"><h1>Servers</h1><span class="muted">${data.servers.length}</span><span class="space"></span>
      ${data.servers.length > 0 && !server?.read_only && html`<button onClick=${connect} disabled=${busy}>${busy ? "Connecting…" : "Connect"}</button>`}</div>
    <${Problem} error=${failure} />
    ${!data.servers.length && html`<${Empty} title="No MCP servers are configured">Add one with <code>callwright mcp add NAME COMMAND</code>; its tools appear here and to the model.</${Empty}>`}
    <div class="stack gap-top">${data.servers.map((one) => html`<${Server} one=${one} readOnly=${server?.read_only} onChanged=${reload} key=${one.name} />`)}</div></div>`;
}

function Server({ one, readOnly, onChanged }) {
  const [error, setError] = useState(null);
  const accept = (tool) => post("servers/accept", { tool, digest: one.digests[tool] }).then(onChanged, (failure) => { setError(failure); onChanged(); });
  const mood = GOOD.has(one.condition) ? "allow" : BAD.test(one.condition) ? "deny" : "ask";
  return html`<article class="sheet pad stack" aria-label=${plain(one.name)}>
    <div class="head"><h2 class="name">${show(one.name)}</h2><span class=${"decision " + mood}>${show(one.condition)}</span><span class="space"></span>
      <span class="note num">${one.seconds ? `connected in ${duration(one.seconds)}` : ""}</span></div>
    <dl class="pairs"><dt>${/^https?:/.test(one.target) ? "address" : "command"}</dt><dd><code>${show(one.target)}</code></dd>
      <dt>from</dt><dd>${show(one.scope)}${one.file ? html` · ${show(one.file)}` : ""}</dd>
      ${one.server && html`<dt>server</dt><dd>${show(one.server)}${one.protocol ? html` · protocol ${show(one.protocol)}` : ""}</dd>`}</dl>
    ${one.reason && html`<p class="warning">${show(one.reason)}</p>`}
    ${one.conflict && html`<p class="warning">${show(one.conflict)}</p>`}
    ${one.problems.map((problem) => html`<p class="warning">${show(problem)}</p>`)}
    ${/^https?:/i.test(one.sign_in_url) && html`<p><a class="button" href=${one.sign_in_url} target="_blank" rel="noopener noreferrer">Sign in</a></p>`}
    ${one.held.map((tool) => html`<p class="warning held"><span><code>${show(tool)}</code> changed since it was last seen, so it is held back.</span>${!readOnly && html`<button onClick=${() => accept(tool)}>Accept the new version</button>`}</p>
      <details class="fold"><summary>What it is now</summary><${LongText} text=${one.review[tool] || ""} label=${"definition of " + plain(tool)} /></details>`)}
    <${Problem} error=${error} />
    ${one.tools.length > 0 && html`<details class="fold" open=${one.tools.length < 13}><summary>${many(one.tools.length, "tool")}</summary><p class="chips">${one.tools.map((tool) => html`<a class="chip mono" href=${`/tools?name=${encodeURIComponent(tool)}`}>${show(tool)}</a>`)}</p></details>`}
    ${one.log && html`<details class="fold"><summary>Log</summary><${LongText} text=${one.log} label=${"log of " + plain(one.name)} /></details>`}
  </article>`;
}
