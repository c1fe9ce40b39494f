// What the find bar finds, the undo dialog and the export of a session, loaded when they are used.
import { html, useEffect, useRef, useState } from "./vendor.js";
import { blob, get } from "./api.js";
import { askLater } from "./parts.js";
import { oneLine, plain, show } from "./text.js";

/** The hits of the find bar; `keys.current` gets the keys that are typed into it. */
export function Hits({ id, text, keys, onHit, onClose, scroller }) {
  const [hits, setHits] = useState(null);
  const [place, setPlace] = useState(0);
  const [error, setError] = useState("");
  useEffect(() => {
    if (!text.trim()) return void setHits(null);
    return askLater(120, (signal) => get("find", { id, q: text }, signal), (data) => {
      setError("");
      setHits(data);
      setPlace(data.hits.length - 1);
      if (data.hits.length) onHit(data.hits.at(-1).position);
    }, (failure) => setError(failure.message));
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
  keys.current = (event) => event.key === "Enter" && (event.preventDefault(), move(event.shiftKey ? 1 : -1));
  return html`<span class="num muted" role="status">${error ? show(error) : hits ? (hits.hits.length ? `${place + 1} of ${hits.hits.length}${hits.more ? "+" : ""}` : "not found") : ""}</span>
    <button onClick=${() => move(-1)} aria-label="Previous hit">↑</button><button onClick=${() => move(1)} aria-label="Next hit">↓</button><button onClick=${onClose} aria-label="Close find">✕</button>`;
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

/** Asks before the newest change is undone. `act` sends what is asked for. */
export function Undo({ plan, talk, act, onClose }) {
  const dialog = useRef(null);
  const undo = (overwrite) => act("undo", { position: null, dry_run: false, ...(overwrite && { overwrite }) }, (done) => {
    onClose();
    if (done.problems?.length) talk.notice(done.problems.join("; "));
    talk.open(null);
  });
  useEffect(() => dialog.current.showModal(), []);
  const clash = plan.conflicts?.length > 0;
  return html`<dialog ref=${dialog} onClose=${onClose} aria-label="Undo">
    <h2>Undo${plan.label ? html` “${show(oneLine(plan.label, 80))}”` : ""}?</h2>
    ${plan.conversation && html`<p>The conversation goes back to before this message.</p>`}
    ${plan.changes.length ? html`<ul class="plain">${plan.changes.map((change) => html`<li><span class="tag">${show(change.action)}</span> <code>${show(change.path)}</code></li>`)}</ul>` : html`<p>No file changes.</p>`}
    ${clash && html`<p class="warning">Changed since then, and overwritten by the undo: ${show(plan.conflicts.join(", "))}</p>`}
    ${plan.problems?.map((problem) => html`<p class="warning">${show(problem)}</p>`)}
    <div class="answers"><button class=${clash ? "danger" : "primary"} onClick=${() => undo(clash)}>${clash ? "Undo and overwrite" : "Undo"}</button><button onClick=${() => dialog.current.close()}>Cancel</button></div></dialog>`;
}

/** Save a session as one HTML file. */
export async function exportSession(detail) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await blob(`/api/export?format=html&id=${encodeURIComponent(detail.id)}`));
  link.download = plain(detail.title || "session").replace(/[^\w-]+/g, "-").slice(0, 60) + ".html";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
