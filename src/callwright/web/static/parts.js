// Small pieces that every page uses: problems, questions to the server while typing, and parts that come later.
import { html, useEffect, useState } from "./vendor.js";
import { show } from "./text.js";

/** A problem, said where it happened. */
export function Problem({ error, retry }) {
  if (!error) return null;
  const text = typeof error === "string" ? error : error.message;
  return html`<div class="problem" role="alert"><p>${show(text)}</p>${retry && html`<button onClick=${retry}>Try again</button>`}</div>`;
}

/** Ask after a pause in the typing, with a signal; gives what calls it off, so that a late answer is dropped. */
export function askLater(pause, ask, done, failed) {
  const abort = new AbortController();
  const timer = setTimeout(() => ask(abort.signal).then(done, (failure) => failure.name === "AbortError" || failed(failure)), pause);
  return () => (clearTimeout(timer), abort.abort());
}

/** The exports of a module that is loaded once it is `needed`; `failed` says why it is not there. */
export function useModule(load, needed) {
  const [module, setModule] = useState({});
  useEffect(() => {
    if (needed) load().then(setModule, () => setModule({ failed: "This part of the page did not load. Is callwright web still running? Then reload the page." }));
  }, [needed]);
  return module;
}
