// The skills page: what the agent can be told to do, as the model reads it.
import { html, useState } from "./vendor.js";
import { get } from "./api.js";
import { Markdown } from "./markdown.js";
import { Empty, Title, useLoad } from "./page_parts.js";
import { Problem } from "./parts.js";
import { count, oneLine, show } from "./text.js";

export default function Skills({ url }) {
  const [data, error, reload] = useLoad(() => get("skills"), []);
  const [filter, setFilter] = useState("");
  if (error) return html`<div class="page"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!data) return html`<p class="boot">Loading…</p>`;
  const chosen = data.skills.find((skill) => skill.name === url.searchParams.get("name"));
  const found = data.skills.filter((skill) => (skill.name + " " + skill.description).toLowerCase().includes(filter.toLowerCase()));
  if (!data.skills.length && !data.problems.length) return html`<div class="page"><h1>Skills</h1><${Empty} title="No skills in this project">A skill is a folder with a <code>SKILL.md</code> under <code>.callwright/skills/</code>: instructions that the model loads when they fit.</${Empty}></div>`;
  return html`<div class=${"split" + (chosen ? " chosen" : "")}>
    <div class="pick"><div class="pick-head"><${Title} chosen=${chosen}>Skills <span class="muted">${count(data.skills.length)}</span></${Title}>
        <input type="search" aria-label="Filter skills" placeholder="Filter skills" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></div>
      ${data.problems.map((problem) => html`<p class="warning pad">${show(problem.file)}${problem.line ? `:${problem.line}` : ""}: ${show(problem.message)}</p>`)}
      <ul class="plain">${found.map((skill) => html`<li key=${skill.name + skill.file}><a href=${`/skills?name=${encodeURIComponent(skill.name)}`} aria-current=${skill === chosen ? "true" : null}>
        <span class="pick-name"><b>${show(skill.name)}</b><span class="tag">${show(skill.scope)}</span></span><span class="muted">${show(oneLine(skill.description, 120))}</span></a></li>`)}</ul></div>
    <div class="detail">${chosen ? html`<article class="tool"><a class="back" href="/skills">All skills</a>
        <div class="head"><h1 class="name">${show(chosen.name)}</h1><span class="tag">${show(chosen.kind)}</span><span class="tag">${show(chosen.scope)}</span></div>
        <p class="file">${show(chosen.file)}</p>
        <p>${show(chosen.description)}</p>
        ${chosen.problems.map((problem) => html`<p class="warning">${show(typeof problem === "string" ? problem : problem.message)}</p>`)}
        <hr class="rule" /><${Markdown} text=${chosen.body} /></article>`
      : html`<${Empty} title="Choose a skill">Its instructions are shown as the model reads them.</${Empty}>`}</div></div>`;
}
