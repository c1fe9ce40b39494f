// Small pieces of the pages beside the sessions: titles and empty states of lists, copying, loading.
import { h, html, useEffect, useRef, useState } from "./vendor.js";

/** The title of a list: the page's heading until something of the list is chosen. */
export function Title({ chosen, children }) {
  return h(chosen ? "h2" : "h1", { class: "list-title" }, children);
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="title">${title}</p>${children && html`<p>${children}</p>`}</div>`;
}

export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      setDone("Copied");
    } catch {
      setDone("The browser did not allow copying");
    }
    setTimeout(() => setDone(""), 1500);
  };
  return html`<button class="quiet" onClick=${copy}><span aria-live="polite">${done || label}</span></button>`;
}

/** Load something when `inputs` change; gives [data, error, reload]. */
export function useLoad(load, inputs) {
  const [state, setState] = useState([null, null]);
  const round = useRef(0);
  const reload = () => {
    const mine = ++round.current;
    const settle = (next) => mine === round.current && setState(next);
    return load().then((data) => settle([data, null]), (error) => settle([null, error]));
  };
  useEffect(() => {
    setState([null, null]);
    reload();
    return () => void round.current++;
  }, inputs);
  return [...state, reload];
}
