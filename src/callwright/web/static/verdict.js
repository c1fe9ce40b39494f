// What the policies say of a call: the decision, the reason, and the rule behind it.
import { html } from "./vendor.js";
import { show } from "./text.js";

const WORDS = { allow: "Allowed", ask: "Asks first", deny: "Denied", invalid: "Not complete", error: "Not known" };

function Decision({ decision }) {
  return html`<span class=${"decision " + decision}>${WORDS[decision] || show(decision)}</span>`;
}

export function Verdict({ verdict }) {
  if (!verdict) return html`<div class="judged" role="status"><p class="note">…</p></div>`;
  return html`<div class=${"judged " + verdict.decision} role="status">
    <p><${Decision} decision=${verdict.decision} /> ${show(verdict.reason)}${verdict.source && html` <span class="muted">· decided by</span> <code>${show(verdict.source)}</code>`}</p>
    ${verdict.parts?.length > 0 && html`<ul class="plain parts">${verdict.parts.map((part) => html`<li><${Decision} decision=${part.decision} />
      <code>${show(part.runs ?? part.touches ?? "")}</code>${part.reason && html`<span class="muted"> ${show(part.reason)}</span>`}${part.source && html`<span class="muted"> · ${show(part.source)}</span>`}</li>`)}</ul>`}
    ${verdict.wall && html`<p class="note">Runs behind a wall: ${show(verdict.wall)}</p>`}
    ${verdict.hooks?.length > 0 && html`<p class="note">Hooks also see this call: ${show(verdict.hooks.map((hook) => (typeof hook === "string" ? hook : JSON.stringify(hook))).join(", "))}</p>`}
  </div>`;
}
