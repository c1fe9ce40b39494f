// The tools page: try a tool, see what the policies say while typing, and take the call along.
import { html, useEffect, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { ArgumentsEditor } from "./form.js";
import { Markdown } from "./markdown.js";
import { LongText, Outcome, Preview, outcomeFacts } from "./calls.js";
import { Copy, Empty, Title, useLoad } from "./page_parts.js";
import { Problem, askLater } from "./parts.js";
import { QuestionCard } from "./question.js";
import { HIDDEN, count, oneLine, plain, show } from "./text.js";
import { initial } from "./schema.js";
import { Verdict } from "./verdict.js";

export default function Tools({ url, server }) {
  const [data, error, reload] = useLoad(() => get("tools"), []);
  const [filter, setFilter] = useState("");
  const name = url.searchParams.get("name");
  if (error) return html`<div class="page"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!data) return html`<p class="boot">Loading…</p>`;
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = data.tools.filter((tool) => words.every((word) => `${tool.name} ${tool.description} ${tool.group}`.toLowerCase().includes(word)));
  const tool = data.tools.find((one) => one.name === name);
  return html`<div class=${"split" + (tool ? " chosen" : "")}>
    <div class="pick"><div class="pick-head"><${Title} chosen=${tool}>Tools <span class="muted">${count(data.tools.length)}</span></${Title}>
      <input type="search" aria-label="Filter tools" placeholder="Filter tools" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></div>
      ${!found.length && html`<p class="note pad">No tool matches. <a href=${`/search?q=${encodeURIComponent(filter)}`}>Ask what a sentence would find</a></p>`}
      <ul class="plain">${found.map((one) => html`<li key=${one.name}><a href=${`/tools?name=${encodeURIComponent(one.name)}`} aria-current=${one === tool ? "true" : null}>
        <span class="pick-name"><b class="mono">${show(one.name)}</b><span class=${"effect " + one.effect}>${show(one.effect)}</span></span>
        <span class="muted">${show(oneLine(one.description, 110))}</span></a></li>`)}</ul></div>
    <div class="detail">${tool ? html`<${Tool} tool=${tool} server=${server} key=${tool.name} />`
      : name ? html`<${Empty} title="There is no such tool">${show(name)} is not among the tools of this project.</${Empty}>`
      : html`<${Empty} title="Choose a tool">Its arguments become a form; the verdict of the policies follows while you type.</${Empty}>`}</div>
  </div>`;
}

function Tool({ tool, server }) {
  const [value, setValue] = useState(() => firstValue(tool.schema));
  const [fits, setFits] = useState(true);
  const [verdict, setVerdict] = useState(null);
  const [preview, setPreview] = useState(null);
  const [result, setResult] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const text = JSON.stringify(value);

  useEffect(() => {
    const call = { tool: tool.name, arguments: value };
    const ask = (signal) => Promise.all([post("verdict", call, signal), post("preview", call, signal).catch(() => ({ preview: null }))]);
    return askLater(180, ask, ([judged, seen]) => (setVerdict(judged), setPreview(seen.preview)), (failure) => setVerdict({ decision: "error", reason: failure.message }));
  }, [text]);

  const run = async (answers = {}) => {
    setBusy(true);
    try {
      setResult({ ...(await post("run", { tool: tool.name, arguments: value, answers })), answers });
      setError(null);
    } finally {
      setBusy(false);
    }
  };
  const answer = (question) => async (reply) => {
    const { approved, scope, reason, arguments: given } = reply; // given to a question of the tool; a call is edited above
    await run({ ...result.answers, [question.id]: { approved, scope, ...(reason ? { reason } : {}), ...(given ? { arguments: given } : {}) } });
    return { question: question.id, approved: reply.approved, scope: reply.scope };
  };
  return html`<article class="tool">
    <a class="back" href="/tools">All tools</a>
    <div class="head"><h1 class="mono name">${show(tool.name)}</h1><span class=${"effect " + tool.effect}>${show(tool.effect)}</span>
      ${tool.origin && html`<span class="tag">${show(tool.origin)}</span>`}${tool.deferred && html`<span class="tag">found by search</span>`}${tool.idempotent && html`<span class="tag">idempotent</span>`}</div>
    ${tool.hidden && html`<p class="warning">The model does not see this tool: ${show(tool.hidden)}</p>`}
    <div class="about"><${Markdown} text=${tool.description} /></div>
    <form onSubmit=${(event) => (event.preventDefault(), fits && !busy && run().catch(setError))}>
      <${ArgumentsEditor} schema=${tool.schema} value=${value} onChange=${(next, good) => (setValue(next), setFits(good), setResult(null))} />
      <${Verdict} verdict=${verdict} />
      ${preview && !result && html`<${Preview} preview=${preview} />`}
      <div class="answers"><button class="primary" disabled=${!fits || busy || server?.read_only}>${busy ? "Running…" : "Run"}</button>
        ${server?.read_only && html`<span class="note">This page is read only.</span>`}<span class="space"></span>
        <${Copy} label="Copy as command" text=${() => asCommand(tool, value, verdict)} /><${Copy} label="Copy as test" text=${() => asTest(tool, value, verdict, result)} /></div>
    </form>
    <${Problem} error=${error} />
    <section aria-live="polite">${result && html`<${Result} result=${result} answer=${answer} />`}</section>
    <details class="fold"><summary>Schema</summary><${LongText} text=${JSON.stringify(tool.schema, null, 2)} label="schema" lines=${30} /></details>
  </article>`;
}

/** Required parts are there from the start, except texts and numbers that only the user can give. */
function firstValue(schema) {
  const value = initial(schema, schema);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return {};
  for (const [name, part] of Object.entries(value)) if (part === "" || part === 0) delete value[name];
  return value;
}

function Result({ result, answer }) {
  if (result.status === "interrupted") return result.questions.map((question, place) => html`<${QuestionCard} key=${question.id} question=${{ ...question, editable: false }} first=${place === 0} send=${answer(question)} onDone=${() => {}} />`);
  if (!result.outcome) return html`<p class="note">${show(result.status)}</p>`;
  return html`<h2 class="result">As the model reads it <span class="note num">${outcomeFacts(result.outcome)}</span></h2><${Outcome} outcome=${result.outcome} />`;
}

function asCommand(tool, value, verdict) {
  const quoted = `'${safeJson(value).replaceAll("'", `'\\''`)}'`;
  return `callwright call ${/^[\w.-]+$/.test(tool.name) ? tool.name : `'${plain(tool.name).replaceAll("'", "")}'`} ${quoted}${verdict?.decision === "ask" ? " --yes" : ""}`;
}

function asTest(tool, value, verdict, result) {
  const name = tool.name.replace(/\W+/g, "_").toLowerCase();
  const flags = verdict?.decision === "ask" ? `"--json", "--yes"` : `"--json"`;
  const expected = result?.outcome?.ok && result.outcome.text ? `\n    assert ${pythonOf(result.outcome.text.split("\n")[0].slice(0, 120))} in json.loads(done.stdout)["output"]` : "";
  return `import json\nimport subprocess\n\n\ndef test_${name}():\n    arguments = ${pythonOf(value)}\n    command = ["callwright", "call", ${pythonOf(tool.name)}, json.dumps(arguments), ${flags}]\n    done = subprocess.run(command, capture_output=True, text=True)\n    assert done.returncode == ${result?.outcome && !result.outcome.ok ? 1 : 0}, done.stdout + done.stderr${expected}\n`;
}

/** A JSON value as a Python expression. */
function pythonOf(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, part]) => `${safeJson(key)}: ${pythonOf(part)}`).join(", ")}}`;
  return safeJson(value);
}

/** JSON that can be pasted anywhere: what cannot be seen is escaped. */
function safeJson(value) {
  return (JSON.stringify(value) ?? "null").replace(HIDDEN, (found) => found.replace(/[\s\S]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")));
}
