// The search page: which tools a sentence would find and why, and where past sessions speak of it.
import { html, useEffect, useState } from "./vendor.js";
import { get } from "./api.js";
import { go, sessionPath } from "./app.js";
import { Empty } from "./page_parts.js";
import { Problem, askLater } from "./parts.js";
import { many, oneLine, show } from "./text.js";

export default function Search({ url }) {
  const wanted = url.searchParams.get("q") || "";
  const [text, setText] = useState(wanted);
  const [data, setData] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => setText(wanted), [wanted]);
  useEffect(() => {
    if (!text.trim()) return void setData(null);
    const ask = (signal) => {
      if (text !== wanted) go(`/search?q=${encodeURIComponent(text)}`, true);
      return get("search", { q: text }, signal);
    };
    return askLater(200, ask, (found) => (setData(found), setError(null)), setError);
  }, [text]);
  const most = data?.tools[0]?.score || 1;
  return html`<div class="page"><h1>Search</h1>
    <form role="search" class="start" onSubmit=${(event) => event.preventDefault()}><input type="search" ref=${(element) => element && !element.dataset.on && ((element.dataset.on = "1"), element.focus())} aria-label="A sentence, as the model would say it" placeholder="find text in files" value=${text} onInput=${(event) => setText(event.target.value)} /></form>
    <${Problem} error=${error} />
    ${!data && !error && html`<${Empty} title="Tools and conversations">A sentence finds the tools that the model's tool search would find, with the words that count, and the past sessions that contain it.</${Empty}>`}
    ${data && html`<section><h2>Tools this sentence would find</h2>
      ${!data.tools.length ? html`<p class="note">No tool.</p>` : html`<ol class="cards hits">${data.tools.map((tool) => html`<li key=${tool.name}><a class="hit" href=${`/tools?name=${encodeURIComponent(tool.name)}`}>
        <span class="pick-name"><b class="mono">${show(tool.name)}</b><span class="score" aria-label=${`score ${tool.score.toFixed(1)}`}><i style=${{ width: Math.max(3, (100 * tool.score) / most) + "%" }}></i></span><span class="note num">${tool.score.toFixed(1)}</span></span>
        <span class="muted">${show(oneLine(tool.description, 160))}</span>
        ${tool.why.length > 0 && html`<span class="chips">${tool.why.map((word) => html`<span class="chip">${show(word)}</span>`)}</span>`}</a></li>`)}</ol>`}</section>
    <section><h2>Sessions that contain it</h2>
      ${!data.sessions.length ? html`<p class="note">No session.</p>` : html`<ul class="cards">${data.sessions.map((hit) => html`<li key=${hit.id + hit.position}><a class="hit" href=${sessionPath(hit.id, hit.position)}>
        <b>${show(oneLine(hit.title || "untitled", 100))}</b><span class="muted">${show(oneLine(hit.excerpt, 240))}</span></a></li>`)}</ul><p class="note gap-top">${many(data.sessions.length, "place")}</p>`}</section>`}
  </div>`;
}
