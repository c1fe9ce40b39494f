// Approval cards: what a call wants to do, why it was asked, and the answers.
import { html, useEffect, useRef, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { loadStyle } from "./app.js";
import { LongText, Preview, TELLING } from "./calls.js";
import { Problem } from "./parts.js";
import { oneLine, plain, show } from "./text.js";

const MANY = 40; // rows: more of them are folded, and unfolded before a yes counts
const DEAD = 300; // milliseconds: a tap meant for what stood here before must not answer this card

/** True for a moment after the card appeared or moved. It looks each frame while the card is open, and before each answer: a click may come between a move and the next frame. */
function useDead(card) {
  const [dead, setDead] = useState(true);
  const last = useRef({ place: "", moved: 0 });
  const isDead = (now = performance.now()) => {
    const box = card.current?.getBoundingClientRect();
    const place = box ? `${Math.round(box.left)} ${Math.round(box.top)} ${Math.round(box.width)} ${Math.round(box.height)}` : "";
    if (place !== last.current.place || document.hidden) last.current = { place, moved: now };
    return now - last.current.moved < DEAD;
  };
  useEffect(() => {
    let frame = 0;
    let was = true;
    const look = (now) => {
      const still = isDead(now);
      if (still !== was) setDead((was = still));
      frame = requestAnimationFrame(look);
    };
    frame = requestAnimationFrame(look);
    return () => cancelAnimationFrame(frame);
  }, []);
  return [dead, isDead];
}

/** Whether the title of a card is in view, or a part of one that is higher than the view: a key must not answer what nobody sees. */
function isSeen(card) {
  const area = (card.closest(".scroll") ?? document.querySelector("main")).getBoundingClientRect();
  const [whole, title] = [card, card.firstElementChild].map((each) => each.getBoundingClientRect());
  if (whole.height > area.height) return whole.bottom > area.top && whole.top < area.bottom;
  return title.top >= area.top - 1 && title.bottom <= area.bottom + 1;
}

/** Show the parts of a card that are still folded; false if there are none. Nobody approves what the card has not shown. */
function unfold(card) {
  const folded = [...card.querySelectorAll("button.unread")];
  folded.forEach((button) => button.click());
  return folded.length > 0;
}

/** One open question. `onDone` gets how it ended; `send` replaces the request that answers it. */
export function QuestionCard({ question, readOnly, onDone, first, send }) {
  const card = useRef(null);
  const [dead, isDead] = useDead(card);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [editing, setEditing] = useState(false);
  const [declining, setDeclining] = useState(false);
  const [reason, setReason] = useState("");
  const [unfolded, setUnfolded] = useState(false);

  const answer = async (approved, scope = "once", changed = null) => {
    if (busy || isDead()) return;
    if (approved && !changed && unfold(card.current)) return setUnfolded(true);
    setBusy(true);
    setError(null);
    try {
      const reply = { session: question.session, question: question.id, approved, scope, arguments: changed, reason: approved ? "" : reason };
      onDone(send ? await send(reply) : (await post("answer", reply)).settled);
    } catch (failure) {
      if (failure.code === "answered") onDone({ question: question.id, ...failure.body, note: failure.message });
      else setError(failure);
      setBusy(false);
    }
  };
  const actions = {
    y: () => answer(true),
    s: () => question.scopes.includes("session") && answer(true, "session"),
    a: () => question.scopes.includes("always") && answer(true, "always"),
    e: () => question.editable && !isDead() && setEditing(true),
    n: () => !isDead() && (declining ? answer(false) : setDeclining(true)),
  };
  useEffect(() => {
    if (!first || readOnly) return;
    const onKey = (event) => {
      const held = event.target.closest?.("[data-question]");
      if (event.metaKey || event.ctrlKey || event.altKey || event.repeat || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      const target = held || card.current;
      if (!target?.isConnected || !"ysaen".includes(event.key)) return;
      event.preventDefault(); // the key must not also be typed into what it opens
      if (!isSeen(target)) return target.scrollIntoView({ block: "nearest" });
      target.dispatchEvent(new CustomEvent("answer", { detail: event.key }));
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [first, readOnly]);
  useEffect(() => {
    const element = card.current;
    // not beside a form: it would approve the arguments as they were
    const onAnswer = (event) => question.kind === "approval" && !editing && !declining && actions[event.detail]?.();
    element.addEventListener("answer", onAnswer);
    return () => element.removeEventListener("answer", onAnswer);
  });

  const title = titleOf(question);
  return html`<section class=${"question " + (dead ? "dead" : "")} ref=${card} data-question=${question.id} tabindex="-1" aria-label=${plain(title)}>
    <div class="ask-head"><h2>${show(title)}</h2><span class="tag">${show(question.server || question.tool)}</span></div>
    <${Subject} question=${question} />
    ${question.warnings?.map((warning) => html`<p class="warning">${show(warning)}</p>`)}
    <${Why} question=${question} />
    ${readOnly
      ? html`<p class="note">This page is read only: answer in the terminal.</p>`
      : editing
        ? html`<${Editor} question=${question} onSend=${(changed) => answer(true, "once", changed)} onCancel=${() => setEditing(false)} busy=${busy} />`
        : html`<${Answers} question=${question} actions=${actions} answer=${answer} dead=${dead} busy=${busy}
            declining=${declining} reason=${reason} setReason=${setReason} onBack=${() => setDeclining(false)} />`}
    ${unfolded && html`<p class="note" role="status">Parts of this card were folded. They are shown now: read them, then answer again.</p>`}
    <${Problem} error=${error} />
  </section>`;
}

/** The summary if it is short, else the tool and the argument that says most: the card shows the rest. */
function titleOf(question) {
  const summary = question.summary || `Allow ${question.tool}?`;
  if (summary.length <= 90 || question.kind !== "approval") return oneLine(summary, 300);
  const key = TELLING.find((name) => typeof question.arguments?.[name] === "string");
  return key ? `Allow ${question.tool}: ${oneLine(question.arguments[key], 80)}?` : `Allow ${question.tool}?`;
}

/** Arguments that a preview does not show: every one is on the card before it is approved. */
function Rest({ question }) {
  const shown = new Set(["path", ...(question.preview.shown || [])]);
  const rest = argumentRows(question.arguments || {}, (name) => !shown.has(name));
  return rest.length ? html`<${LongText} text=${rest.join("\n")} label="further arguments" lines=${MANY} />` : null;
}

function Subject({ question }) {
  if (question.kind === "input" || question.kind === "form") return html`<p class="said">${show(question.reason)}</p>`;
  if (question.preview) return html`<${Preview} preview=${question.preview} /><${Rest} question=${question} />`;
  if (question.kind === "auth") return html`<p class="said">${show(question.url)}</p>`;
  return html`<${LongText} text=${argumentRows(question.arguments || {}).join("\n")} label="arguments" lines=${MANY} />`;
}

/** Every argument whole; numbers, truth values and empty texts share the last row. */
function argumentRows(values, wanted = () => true) {
  const [short, long] = [[], []];
  for (const [name, value] of Object.entries(values)) {
    if (!wanted(name)) continue;
    const plainValue = value === "" || value === null || !/^(string|object)$/.test(typeof value);
    // a further line of a text begins with a bar, and a name that is not a word is quoted: nothing can look like two arguments
    const text = typeof value === "string" && value ? withBars(value) : JSON.stringify(value);
    (plainValue ? short : long).push(`${/^\w+$/.test(name) ? name : JSON.stringify(name)}: ${text}`);
  }
  return short.length ? [...long, short.join(" · ")] : long;
}

function withBars(text) {
  return text.replace(/\r?\n/g, "\n│ ");
}

/** The folder of a command, and every path, address and resource that the call would use. */
function Uses({ accesses }) {
  const rows = accesses.map(({ verb, target }) => `${verb} ${withBars(target)}`);
  return html`<dt>uses</dt><dd>${rows.length > MANY ? html`<${LongText} text=${rows.join("\n")} label="uses" lines=${MANY} />` : rows.map((row) => html`<div>${show(row)}</div>`)}</dd>`;
}

function Why({ question }) {
  if (question.kind === "input" || question.kind === "form") return null;
  const deciding = (question.deciding || []).filter((line) => line.trim() !== String(question.arguments?.command).trim()); // the card shows the whole command anyway
  return html`<dl class="why">
    ${question.accesses?.length > 0 && html`<${Uses} accesses=${question.accesses} />`}
    ${question.origin && html`<dt>made by</dt><dd><${LongText} text=${question.origin} label="origin" lines=${MANY} /></dd>`}
    ${question.reason && html`<dt>because</dt><dd>${show(question.reason)}</dd>`}
    ${question.source && html`<dt>decided by</dt><dd><code>${show(question.source)}</code></dd>`}
    ${deciding.length > 0 && html`<dt>${deciding.length > 1 ? "these decide" : "decides"}</dt><dd><${LongText} text=${deciding.join("\n")} label="deciding commands" lines=${MANY} /></dd>`}
    ${question.always?.length > 0 && html`<dt>Always saves</dt><dd>${question.always.map((rule) => html`<div><code>${show(rule)}</code></div>`)}</dd>`}
    ${question.always_refusal && html`<dt>no Always</dt><dd>${show(question.always_refusal)}</dd>`}
  </dl>`;
}

function Answers({ question, actions, answer, dead, busy, declining, reason, setReason, onBack }) {
  const Button = ({ act, name, hint, kind }) => html`<button class=${kind} aria-disabled=${dead || busy} aria-keyshortcuts=${hint} onClick=${act}>${name}<kbd aria-hidden="true">${hint}</kbd></button>`;
  if (question.kind === "input") return html`<${Input} question=${question} answer=${answer} dead=${dead} />`;
  if (question.kind === "form") return html`<${ServerForm} question=${question} answer=${answer} dead=${dead} />`;
  if (declining)
    return html`<form class="answers" onSubmit=${(event) => (event.preventDefault(), actions.n())}>
      <input ref=${(element) => element?.focus()} value=${reason} onInput=${(event) => setReason(event.target.value)} aria-label="What should it do instead? (optional)" placeholder="What should it do instead? (optional)" onKeyDown=${(event) => event.key === "Escape" && onBack()} />
      <button class="danger" aria-disabled=${dead || busy}>Decline</button><button type="button" onClick=${onBack}>Back</button></form>`;
  return html`<div class="answers">
    ${question.kind === "auth" && /^https?:/i.test(question.url) && html`<a class="button" href=${question.url} target="_blank" rel="noopener noreferrer">Open the sign-in page</a>`}
    ${Button({ act: actions.y, name: question.kind === "auth" ? "Done" : "Yes", hint: "y", kind: "primary" })}
    ${question.kind === "approval" && question.scopes.includes("session") && Button({ act: actions.s, name: "Session", hint: "s" })}
    ${question.kind === "approval" && question.scopes.includes("always") && Button({ act: actions.a, name: "Always", hint: "a" })}
    ${question.kind === "approval" && question.editable && Button({ act: actions.e, name: "Edit", hint: "e" })}
    <span class="space"></span>
    ${Button({ act: actions.n, name: "No", hint: "n", kind: "danger" })}
  </div>`;
}

function Input({ question, answer, dead }) {
  const [chosen, setChosen] = useState([]);
  const [text, setText] = useState("");
  const pick = (label) => setChosen(question.multiple ? (chosen.includes(label) ? chosen.filter((other) => other !== label) : [...chosen, label]) : [label]);
  return html`<form onSubmit=${(event) => (event.preventDefault(), answer(true, "once", { choices: chosen, text }))}>
    ${question.choices?.length > 0 && html`<fieldset class="choices"><legend class="sr">${plain(question.reason)}</legend>${question.choices.map((choice) => html`<label>
      <input type=${question.multiple ? "checkbox" : "radio"} name=${question.id} checked=${chosen.includes(choice.label)} onChange=${() => pick(choice.label)} />
      <span>${show(choice.label)}${choice.description && html`<small>${show(choice.description)}</small>`}</span></label>`)}</fieldset>`}
    <div class="answers"><input aria-label="Your answer" placeholder="Your own words" value=${text} onInput=${(event) => setText(event.target.value)} />
      <button class="primary" aria-disabled=${dead} disabled=${!chosen.length && !text.trim()}>Answer</button>
      <button type="button" class="danger" aria-disabled=${dead} onClick=${() => answer(false)}>Skip</button></div></form>`;
}

/** Forms are loaded when one is needed; most sessions never show one. */
function useForms() {
  const [module, setModule] = useState(null);
  useEffect(() => void Promise.all([import("./form.js"), loadStyle("pages.css")]).then(([found]) => setModule(found)), []);
  return module;
}

function ServerForm({ question, answer, dead }) {
  const forms = useForms();
  const [values, setValues] = useState({});
  const link = question.arguments?.url;
  return html`<form onSubmit=${(event) => (event.preventDefault(), answer(true, "once", { answer: question.form ? values : {} }))}>
    ${question.form && forms && html`<${forms.SchemaForm} schema=${question.form} value=${values} onChange=${setValues} />`}
    ${link && html`<p class="said">${show(link)}</p>`}
    <div class="answers">${!question.form && /^https?:/i.test(link || "") && html`<a class="button" href=${link} target="_blank" rel="noopener noreferrer">Open ${show(oneLine(link, 60))}</a>`}
      <button class="primary" aria-disabled=${dead}>${question.form ? "Send" : "Done"}</button>
      <span class="space"></span><button type="button" class="danger" aria-disabled=${dead} onClick=${() => answer(false)}>Decline</button></div></form>`;
}

function Editor({ question, onSend, onCancel, busy }) {
  const forms = useForms();
  const [schema, setSchema] = useState(null);
  const [value, setValue] = useState(question.arguments);
  const [valid, setValid] = useState(true);
  useEffect(() => {
    get("tools").then(({ tools }) => setSchema(tools.find((tool) => tool.name === question.tool)?.schema || {}), () => setSchema({}));
  }, []);
  if (!forms || !schema) return html`<p class="note">Loading…</p>`;
  return html`<form class="editor" onSubmit=${(event) => (event.preventDefault(), valid && onSend(value))} onKeyDown=${(event) => event.key === "Escape" && onCancel()}>
    <${forms.ArgumentsEditor} schema=${schema} value=${value} onChange=${(next, fits) => (setValue(next), setValid(fits))} />
    <div class="answers"><button class="primary" disabled=${!valid || busy}>Run with these arguments</button><button type="button" onClick=${onCancel}>Cancel</button></div></form>`;
}
