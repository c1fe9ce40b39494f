// The frame of every page: address, navigation, live state, errors, keys.
import { html, render, useEffect, useRef, useState } from "./vendor.js";
import { get, listen, live, reconnect, startStream, takeToken, token } from "./api.js";
import { plain, show } from "./text.js";

const PAGES = ["sessions", "tools", "rules", "servers", "skills", "search", "costs"];
const pathOf = (name) => (name === "sessions" ? "/" : "/" + name);
const titleOf = (name) => name[0].toUpperCase() + name.slice(1);
const MODULES = Object.fromEntries([...PAGES, "session"].map((name) => [pathOf(name), name]));

/** Go to an address of this page without loading it anew. */
export function go(address, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new Event("callwright-go"));
}

/** The address of a session, at its record `at` if that is given. */
export function sessionPath(id, at) {
  return `/session?id=${encodeURIComponent(id)}${at === undefined ? "" : `&at=${at}`}`;
}

function useAddress() {
  const [address, setAddress] = useState(location.pathname + location.search);
  useEffect(() => {
    const update = () => {
      takeToken();
      setAddress(location.pathname + location.search);
    };
    for (const event of ["popstate", "callwright-go", "hashchange"]) addEventListener(event, update);
    return () => ["popstate", "callwright-go", "hashchange"].forEach((event) => removeEventListener(event, update));
  }, []);
  return new URL(address, location.origin);
}

function followLink(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || !(url.pathname in MODULES)) return;
  event.preventDefault();
  go(url.pathname + url.search);
  if (!link.closest("nav")) document.querySelector("main")?.focus({ preventScroll: true });
}

function usePage(name) {
  const [page, setPage] = useState(null);
  useEffect(() => {
    let ended = false;
    const styled = name === "session" || name === "outside" ? null : loadStyle(name === "sessions" ? "sessions.css" : "pages.css");
    Promise.all([import(`./${name}.js`), styled]).then(
      ([module]) => ended || setPage({ name, View: module.default }),
      () => ended || setPage({ name, error: "This part of the page did not load. Is callwright web still running?" }),
    );
    return () => void (ended = true);
  }, [name]);
  return page?.name === name ? page : null;
}

/** Styles that not every page needs are loaded with those that do. */
export function loadStyle(name) {
  const href = new URL(name, import.meta.url).pathname; // beside this script
  const there = document.querySelector(`link[href="${href}"]`);
  if (there) return there.ready;
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
  link.ready = new Promise((resolve) => (link.onload = link.onerror = resolve));
  document.head.append(link);
  return link.ready;
}

const STATUS = {
  live: ["live", "Connected: this page updates by itself"],
  connecting: ["connecting…", "Connecting to the server"],
  gone: ["server gone", "The server does not answer; trying again"],
  refused: ["not signed in", "The server refused the token of this browser"],
};

function App() {
  const url = useAddress();
  const [server, setServer] = useState(null);
  const [failure, setFailure] = useState(null);
  const [refused, setRefused] = useState(!token());
  const [status, setStatus] = useState(live.status);
  const again = useRef(0); // the first greeting comes while the page loads anyway
  const [problem, setProblem] = useState("");
  const [asks, setAsks] = useState(live.questions.size);
  const load = () => get("state").then((data) => (setServer(data), setFailure(null), setRefused(false)), setFailure);

  useEffect(() => listen((batch) => {
    for (const event of batch) {
      if (event.type === "token" || (event.type === "status" && event.status === "refused")) setRefused(true);
      else if (event.type === "status") setStatus(event.status);
      else if (event.type === "hello" && again.current++) load();
      else if (event.type === "problem") setProblem(event.text);
    }
    setAsks(live.questions.size);
  }), []);
  useEffect(() => {
    load();
    startStream();
    addEventListener("keydown", onKey);
    addEventListener("hashchange", () => token() && (setRefused(false), load().then(reconnect)));
  }, []);

  const name = MODULES[url.pathname];
  const page = usePage(refused || !name ? "outside" : name);
  const question = asks ? [...live.questions.values()][0] : null;
  useEffect(() => {
    const title = titleOf(name || "session");
    const current = document.querySelector("header nav [aria-current]");
    current?.parentElement.scrollTo({ left: current.offsetLeft - 80 });
    document.title = (asks ? `(${asks}) ` : "") + (server ? `${title} · ${plain(server.name)}` : "callwright");
  }, [url.pathname, asks, server]);

  return html`<div class="frame" onClick=${followLink}>
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.querySelector("main").focus())}>Skip to the content</a>
    <header>
      <a class="brand" href="/"><img src=${document.querySelector("link[rel=icon]").href} alt="" width="20" height="20" /><span>callwright</span></a>
      <nav aria-label="Pages">${PAGES.map((each) => html`<a href=${pathOf(each)} aria-current=${each === name || (each === "sessions" && name === "session") ? "page" : null}>${titleOf(each)}</a>`)}</nav>
      <span class="space"></span>
      ${server && html`<span class="where" title=${plain(server.project)}>${show(server.name)}${server.read_only && html`<span class="tag">read only</span>`}${server.demo && html`<span class="tag">demo</span>`}</span>`}
      ${question && html`<a class="asks" href=${sessionPath(question.session)}>${asks} to answer</a>`}
      <span class=${"status " + status} role="status" title=${STATUS[status][1]}>${STATUS[status][0]}</span>
    </header>
    ${status === "gone" && !refused && html`<p class="banner bad" role="alert">The server does not answer. If callwright web ended, start it again and open the link that it prints.</p>`}
    ${[...(server?.problems || []), problem].filter(Boolean).map((text) => html`<p class="banner">${show(text)}</p>`)}
    <main id="main" tabindex="-1" class=${"on-" + name}>
      <${Body} page=${page} failure=${server || refused ? null : failure} url=${url} server=${server} retry=${load} />
    </main>
  </div>`;
}

function Body({ page, failure, url, server, retry }) {
  if (failure && failure.status) return html`<div class="problem" role="alert"><p>${show(failure.message)}</p><button onClick=${retry}>Try again</button></div>`;
  if (!page) return html`<p class="boot">Loading…</p>`;
  if (page.error) return html`<div class="problem" role="alert"><p>${page.error}</p><button onClick=${() => location.reload()}>Reload</button></div>`;
  return html`<${page.View} url=${url} server=${server} known=${url.pathname in MODULES} key=${page.name} />`;
}

/** g and a letter goes to a page; ? and / belong to the pages. */
const KEYS = { s: "/", t: "/tools", r: "/rules", v: "/servers", k: "/skills", f: "/search", c: "/costs" };
let pending = 0;

function onKey(event) {
  if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "g") pending = Date.now();
  else if (Date.now() - pending < 1200 && KEYS[event.key]) {
    pending = 0;
    event.preventDefault();
    event.stopImmediatePropagation();
    go(KEYS[event.key]);
  } else pending = 0;
}

export function isTyping(element) {
  return element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);
}

takeToken();
document.getElementById("app").replaceChildren();
render(html`<${App} />`, document.getElementById("app"));
