// Runs of workers that wait for an answer, wherever they run.
import { html, useEffect, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { describeSettled } from "./calls.js";
import { Problem } from "./parts.js";
import { QuestionCard } from "./question.js";
import { ago, show } from "./text.js";

const EVERY = 3000; // milliseconds: the store of the workers tells no page of changes

/** The waiting runs, with their questions as cards. */
export function Runs({ readOnly }) {
  const [runs, setRuns] = useState([]);
  const [error, setError] = useState(null);
  const [done, setDone] = useState([]);
  const load = () => get("runs").then((data) => (setRuns(data.runs), setError(data.error)), setError);
  useEffect(() => {
    load();
    const timer = setInterval(() => document.hidden || load(), EVERY);
    return () => clearInterval(timer);
  }, []);
  const settle = (run, question, settled) => {
    setDone((before) => [...before.slice(-4), { id: question.id, title: run.title || run.session, text: settled.note || describeSettled(settled), approved: settled.approved }]);
    load();
  };
  const answered = new Set(done.map((one) => one.id));
  const waiting = runs.map((run) => ({ ...run, questions: run.questions.filter((question) => !answered.has(question.id)) })).filter((run) => run.questions.length);
  if (!waiting.length && !done.length && !error) return null;
  return html`<section aria-label="Waiting runs"><h2>Waiting runs</h2><${Problem} error=${error} retry=${load} />
    ${done.map((one) => html`<p class=${"line " + (one.approved ? "good" : "bad")} role="status" key=${one.id}>${show(one.text)} <span class="muted">· ${show(one.title)}</span></p>`)}
    ${waiting.map((run) => html`<article class="run" key=${run.session}>
      <p class="run-head"><b>${show(run.title || run.session)}</b> <span class="muted">${show(run.session)} · ${ago(run.updated_at)}</span></p>
      ${run.questions.map((question, place) => html`<${QuestionCard} key=${question.id} question=${question} first=${place === 0 && run === waiting[0]} readOnly=${readOnly}
        send=${(reply) => post("runs/answer", reply).then((data) => data.settled)} onDone=${(settled) => settle(run, question, settled)} />`)}
    </article>`)}</section>`;
}
