// The record of one session as the page holds it: loaded in chunks, kept up to date by events.
import { aboutOf, get, listen, live } from "./api.js";
import { needsCalls } from "./messages.js";

const CHUNK = 100;
const KEPT = 3000; // records held in memory; those far from the view are fetched again
const GROWTH = new Set(["text", "thinking", "call_text", "message"]);
const ENDS = {
  turns: "the limit of turns is reached", tokens: "the limit of tokens is reached", money: "the limit of money is reached", seconds: "the limit of seconds is reached",
  repeated: "the model repeats its calls", halted: "a hook ended it", provider: "the request to the model failed", refusal: "the model refused",
  length: "the answer is longer than the model may write", output: "the answer does not have the required form", empty: "the model gave no answer",
};
const PAUSE = 1000; // milliseconds before a request that failed is sent again
const STREAMED = 20_000; // characters of a growing message that are drawn; the record has the whole

export class Conversation {
  /** `changed` is called, at most once per frame, when something to show is different. */
  constructor(id, changed) {
    this.id = id;
    this.changed = changed;
    this.error = null;
    this.detail = null;
    this.records = 0;
    this.latest = 0; // records that exist, as the stream tells
    this.items = new Map();
    this.loading = new Set();
    this.calls = new Map(); // "position/call id" of an assistant's message → outcome
    this.owners = new Map(); // position of an outcome → the message it belongs to is loaded
    this.asked = new Map(); // question id → question, from the record
    this.questions = [];
    this.settled = new Map(); // question id → how it ended, for cards that have just been answered
    this.runs = new Map(); // call id → what it is doing now
    this.fresh = new Map(); // call id → outcome that is not on record yet
    this.partial = newPartial();
    this.number = 0; // of the last event that what was read includes
    this.held = []; // events that came while it was read
    this.notices = [];
    this.toldEnd = 0; // when the run ended whose end was said last
    this.version = 0;
    this.called = false; // whether a loaded record needs more than plain text to be drawn
    this.stop = listen((batch) => this.take(batch));
  }

  close() {
    this.stop();
    this.closed = true;
  }

  draw() {
    if (this.frame || this.closed) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.closed) this.changed(++this.version);
    });
  }

  async open(at) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.opening = true;
    this.number = 0;
    try {
      const from = at === null ? -CHUNK : Math.max(0, at - CHUNK / 2);
      const { messages: page, ...detail } = await get("session", { id: this.id, from, limit: CHUNK });
      if (turn !== this.turn) return; // a later one is under way
      this.error = null;
      this.setDetail(detail);
      this.items.clear();
      this.records = page.records;
      this.add(page.items);
    } catch (error) {
      if (turn !== this.turn) return;
      this.error = error;
    }
    this.opening = false;
    for (const event of this.held.splice(0)) this.apply(event);
    this.draw();
    if (this.latest > this.records) this.grow(this.latest);
  }

  setDetail(detail) {
    this.detail = detail;
    this.number = detail.number;
    this.records = Math.max(this.records, detail.records);
    this.setQuestions(detail.questions);
    this.partial = { ...newPartial(), ...detail.partial, calls: [...(detail.partial?.calls || [])] };
    this.runs.clear();
    for (const [call, on] of Object.entries(detail.waits || {})) this.runs.set(call, { state: "waiting", on });
    for (const call of detail.running || []) this.runs.set(call.id, { state: "running", since: call.since, text: call.progress });
    this.tellEnd(detail.end || {});
  }

  /** Say why a run failed, once: it may have ended before this page was opened. */
  tellEnd({ ended, reason, at }) {
    if (!at || at === this.toldEnd) return;
    this.toldEnd = at;
    if (ended === "failed" || ended === "stopped") this.notice(`The run ended: ${ENDS[reason] || reason || ended}`);
  }

  /** The stream may have told of questions and answers after this list was made. */
  setQuestions(listed) {
    const known = new Map(listed.map((question) => [question.id, question]));
    for (const question of live.questions.values()) if (question.session === this.id) known.set(question.id, question);
    for (const id of this.settled.keys()) known.delete(id);
    this.questions = [...known.values()].sort((one, other) => one.asked_at - other.asked_at);
    if (this.questions.length && this.detail?.state === "running") this.setState("waiting");
  }

  /** Fetch what the summary of the session needs again, soon and once. */
  refresh() {
    if (this.refreshing) return;
    this.refreshing = setTimeout(async () => {
      this.refreshing = 0;
      try {
        const { partial, running, questions, ...detail } = await get("session", { id: this.id });
        this.detail = { ...this.detail, ...detail };
        this.setQuestions(questions);
        this.stamp = Date.now();
      } catch (error) {
        if (error.status === 404) this.error = error;
      }
      this.draw();
    }, 150);
  }

  add(items) {
    for (const item of items) this.items.set(item.position, item);
    this.called ||= items.some(needsCalls);
    this.link();
    if (this.partial.done && items.length) this.partial = newPartial();
  }

  /** Join outcomes and answers to the calls and questions they belong to. */
  link() {
    const last = new Map();
    this.calls.clear();
    this.owners.clear();
    for (const position of [...this.items.keys()].sort((one, other) => one - other)) {
      const item = this.items.get(position);
      if (item.kind === "assistant") for (const part of item.parts) part.type === "call" && last.set(part.id, position);
      else if (item.kind === "ended" || item.kind === "outcomes") {
        const outcomes = item.outcomes || [item.outcome];
        for (const outcome of outcomes) if (last.has(outcome.call)) this.calls.set(`${last.get(outcome.call)}/${outcome.call}`, outcome);
        this.owners.set(position, outcomes.every((outcome) => last.has(outcome.call)));
      } else if (item.kind === "asked") for (const question of item.questions) this.asked.set(question.id, question);
    }
  }

  /** Load what is near the view, and forget what is far away. */
  want(first, last) {
    for (let chunk = Math.floor(first / CHUNK); chunk * CHUNK < Math.min(last, this.records); chunk++) {
      let from = chunk * CHUNK;
      const end = Math.min(from + CHUNK, this.records);
      while (from < end && this.items.has(from)) from++;
      if (from < end) this.load(from, end - from);
    }
    if (this.items.size > KEPT) {
      for (const position of this.items.keys()) if (position < first - KEPT / 3 || position > last + KEPT / 3) this.items.delete(position);
      this.link();
    }
  }

  async load(from, limit) {
    const key = Math.floor(from / CHUNK);
    if (this.loading.has(key)) return;
    this.loading.add(key);
    try {
      const page = await get("messages", { id: this.id, from, limit });
      this.add(page.items);
    } catch (error) {
      await this.rest(error);
    }
    this.loading.delete(key);
    this.draw();
  }

  notice(text) {
    this.notices = [...this.notices.slice(-2), text];
    this.draw();
  }

  /** New records exist: fetch the few that are missing at the end. */
  async grow(records) {
    this.latest = Math.max(this.latest, records);
    if (this.growing || this.opening || records <= this.records) return;
    this.growing = true;
    const from = this.records;
    if (records - from <= 1000) {
      try {
        const page = await get("messages", { id: this.id, from, limit: Math.max(1, records - from) });
        this.add(page.items);
        this.records = Math.max(records, ...page.items.map((item) => item.position + 1));
      } catch (error) {
        await this.rest(error);
      }
    } else this.records = records;
    this.growing = false;
    this.draw();
    if (this.latest > this.records && !this.closed && !this.error) this.grow(this.latest);
  }

  /** Say what failed, and let some time pass: what is still missing is asked for again at once. */
  rest(error) {
    this.notice(error.message);
    return new Promise((resolve) => setTimeout(resolve, PAUSE));
  }

  take(batch) {
    for (const event of batch) {
      if (event.type === "hello") this.detail && this.open(null);
      else if (event.session === this.id && this.opening) this.held.push(event);
      else if (event.session === this.id) this.apply(event);
    }
  }

  apply(event) {
    if (GROWTH.has(event.type) && event.number <= this.number) return; // the message as it was read has it
    switch (event.type) {
      case "stored":
        this.grow(event.records);
        if (this.detail && event.title) this.detail = { ...this.detail, title: event.title, updated_at: event.updated_at };
        this.stamp = Date.now();
        break;
      case "summary":
        this.refresh();
        break;
      case "text":
      case "thinking":
        if (this.partial.done) this.partial = newPartial();
        this.partial[event.type] = (this.partial[event.type] + event.text).slice(-STREAMED);
        break;
      case "call_text":
        this.partialCall(event);
        break;
      case "message":
        this.partial.done = true;
        this.fresh.clear();
        break;
      case "call_waits":
        this.runs.set(event.call, { state: "waiting", on: event.on, since: event.at });
        break;
      case "call_began":
        this.runs.set(event.call, { state: "running", since: event.at });
        break;
      case "call_progressed":
        this.runs.set(event.call, { ...this.runs.get(event.call), state: "running", text: event.text });
        break;
      case "call_retried":
        this.runs.set(event.call, { ...this.runs.get(event.call), state: "retrying", text: `attempt ${event.attempt} failed: ${event.error}` });
        break;
      case "call_ended":
        this.runs.delete(event.outcome.call);
        if (event.outcome.code !== "interrupted") this.fresh.set(event.outcome.call, event.outcome);
        break;
      case "asked":
        for (const one of event.questions) this.settled.delete(one.id); // its answer counted nowhere
        this.questions = [...this.questions.filter((old) => !event.questions.some((one) => aboutOf(one.id) === aboutOf(old.id))), ...event.questions];
        this.setState("waiting");
        break;
      case "settled":
        this.settle(event);
        break;
      case "agent":
        if (event.state === "gone") this.vanish();
        else this.setState(event.state, event.where, event.mode);
        break;
      case "run_began":
        this.setState("running");
        break;
      case "run_ended":
        this.runs.clear();
        this.tellEnd(event);
        this.refresh();
        break;
      case "notice":
        this.notice(event.text);
        break;
      case "removed":
        this.error = { status: 404, message: "This session was deleted." };
        break;
    }
    this.draw();
  }

  partialCall(event) {
    if (this.partial.done) this.partial = newPartial();
    const call = this.partial.calls.find((one) => one.id === event.call);
    if (call) call.arguments = (call.arguments + event.text).slice(-STREAMED);
    else this.partial.calls.push({ id: event.call, name: event.name, arguments: event.text });
  }

  settle(settled) {
    const question = this.questions.find((one) => one.id === settled.question);
    live.questions.delete(settled.question);
    if (question && !this.settled.has(question.id)) this.settled.set(question.id, { ...settled, subject: question });
    this.questions = this.questions.filter((one) => one.id !== settled.question);
    this.draw();
  }

  setState(state, where, mode) {
    if (this.detail) this.detail = { ...this.detail, state, where: where ?? this.detail.where, mode: mode ?? this.detail.mode };
  }

  vanish() {
    const busy = this.detail && (this.detail.state === "running" || this.detail.state === "waiting");
    this.runs.clear();
    this.partial = newPartial();
    if (busy) this.notice("The process that ran this session has ended. The session can be continued here or in the terminal.");
    this.refresh();
  }
}

function newPartial() {
  return { text: "", thinking: "", calls: [], done: false };
}
