// The server's API: the token, requests, and one live stream that all tabs of the browser share.

const KEY = "callwright-token";
const LOCK = "callwright-stream";

/** Take the token of the link out of the address before anything else can see it. */
export function takeToken() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    memory = decodeURIComponent(found[1]);
  } catch {
    memory = found[1];
  }
  if (!stored()) keepToken(memory);
}

let memory = ""; // the token of a link until the server has accepted it, and for browsers that forbid storage
export function token() {
  return memory || stored();
}

function stored() {
  try {
    return localStorage.getItem(KEY) || "";
  } catch {
    return "";
  }
}

function keepToken(accepted) {
  if (accepted !== memory) return;
  try {
    localStorage.setItem(KEY, memory);
    memory = "";
  } catch {
    // it stays in memory
  }
}

/** A request that did not work: `status` is 0 when the server did not answer. */
class RequestError extends Error {
  constructor(status, body) {
    super(body?.error || `the server answered ${status}`);
    this.status = status;
    this.code = body?.code || "";
    this.body = body || {};
  }
}

const GONE = "The server does not answer. Is callwright web still running?";

async function request(path, options = {}) {
  const sent = token();
  const headers = { Authorization: `Bearer ${sent}`, ...options.headers };
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, { error: GONE, code: "unreachable" });
  }
  if (response.ok) {
    keepToken(sent);
    return response;
  }
  const body = await response.json().catch(() => null);
  if (response.status === 401 && sent === memory && stored()) memory = ""; // a wrong link must not sign the user out
  if (response.status === 401 && token() !== sent) return request(path, options);
  if (response.status === 401) listeners.forEach((listener) => listener([{ type: "token" }]));
  throw new RequestError(response.status, body);
}

function address(path, query) {
  const search = new URLSearchParams(Object.entries(query || {}).filter(([, value]) => value !== undefined));
  const text = search.toString();
  return "/api/" + path + (text ? "?" + text : "");
}

export async function get(path, query, signal) {
  return (await request(address(path, query), { signal })).json();
}

export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await request("/api/" + path, { method: "POST", headers, body: JSON.stringify(body), signal });
  return response.json().catch(() => ({}));
}

/** A file of the server as a blob; images never become markup. */
export async function blob(url) {
  return (await request(url)).blob();
}

// ---- live events

const listeners = new Set();
// without locks, every tab reads a stream of its own: what the others pass on would come twice
const channel = navigator.locks && "BroadcastChannel" in globalThis ? new BroadcastChannel("callwright") : null;
/** What every tab knows without asking: open questions by id, agents by session, and the state of the stream. */
export const live = { status: "connecting", questions: new Map(), agents: new Map(), leads: false };

/** Call `listener` with each batch of events; returns the function that ends it. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function deliver(batch) {
  for (const event of batch) remember(event);
  for (const listener of listeners) listener(batch);
}

function remember(event) {
  switch (event.type) {
    case "status":
      live.status = event.status;
      break;
    case "hello":
      live.questions = new Map(event.questions.map((question) => [question.id, question]));
      live.agents = new Map(event.agents.map((agent) => [agent.session, agent]));
      break;
    case "asked":
      for (const question of event.questions) {
        forget((old) => aboutOf(old.id) === aboutOf(question.id));
        live.questions.set(question.id, question);
      }
      break;
    case "settled":
      live.questions.delete(event.question);
      break;
    case "agent":
      if (event.state === "gone") {
        live.agents.delete(event.session);
        forget((old) => old.session === event.session); // those on record are listed with the session
      } else live.agents.set(event.session, event);
      break;
  }
}

function forget(isOver) {
  for (const question of [...live.questions.values()]) if (isOver(question)) live.questions.delete(question.id);
}

/** What a question is about. A resumed session asks again under an id that differs in its last two parts only. */
export function aboutOf(id) {
  return id.split(".").slice(0, -2).join(".");
}

function publish(batch) {
  deliver(batch);
  channel?.postMessage({ batch });
}

/** Start the live stream: one tab reads it and the others listen to that tab. */
export function startStream() {
  if (channel) {
    channel.onmessage = ({ data }) => {
      if (data.batch) deliver(data.batch);
      else if (data.ask && live.leads) channel.postMessage({ batch: snapshot() });
      else if (data.again && live.leads) restart?.();
    };
    channel.postMessage({ ask: true });
  }
  if (navigator.locks) navigator.locks.request(LOCK, lead);
  else lead(); // plain http on another host has no locks: each tab reads its own stream
}

/** Connect at once, for example after a new token was taken. */
export function reconnect() {
  if (live.leads) restart?.();
  else channel?.postMessage({ again: true });
}

function snapshot() {
  const hello = { type: "hello", agents: [...live.agents.values()], questions: [...live.questions.values()] };
  return live.status === "live" ? [hello, { type: "status", status: "live" }] : [{ type: "status", status: live.status }];
}

let restart = null;

async function lead() {
  live.leads = true;
  let delay = 250;
  for (;;) {
    const abort = new AbortController();
    restart = () => {
      delay = 0;
      abort.abort();
    };
    try {
      await read(abort, () => (delay = 250));
    } catch (error) {
      const refused = error.status === 401 || error.status === 403;
      publish([{ type: "status", status: refused ? "refused" : "gone" }]);
    }
    if (delay) await new Promise((resolve) => setTimeout(resolve, delay));
    delay = Math.min(4000, (delay || 125) * 2);
  }
}

const SILENCE = 40_000; // milliseconds: the server says something every 15 seconds

async function read(abort, opened) {
  let timer = 0;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(), SILENCE); // a network that went away ends no connection
  };
  wait();
  try {
    const response = await request("/api/events", { signal: abort.signal });
    opened();
    publish([{ type: "status", status: "live" }]);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      wait();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const data = block.split("\n").filter((line) => line.startsWith("data:"));
        if (data.length) publish(JSON.parse(data.map((line) => line.slice(5)).join("\n")));
      }
    }
    publish([{ type: "status", status: "gone" }]);
  } finally {
    clearTimeout(timer);
  }
}
