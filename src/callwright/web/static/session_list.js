// The sessions of the project, kept up to date.
import { useEffect, useState } from "./vendor.js";
import { get, listen, live } from "./api.js";

export const STATES = { waiting: "waits for you", running: "running", idle: "open", paused: "paused, waits for you", ended: "" };

/** The sessions, kept up to date by the live stream. */
export function useSessions() {
  const [state, setState] = useState({ sessions: null, error: null });
  const load = () => get("sessions", { limit: 200 }).then(
    (data) => setState({ sessions: data.sessions, error: data.error }),
    (error) => setState((before) => ({ ...before, error })),
  );
  useEffect(() => {
    let timer = 0;
    const soon = () => {
      if (!timer) timer = setTimeout(() => ((timer = 0), load()), 250);
    };
    load();
    let greeted = live.status === "live";
    const stop = listen((batch) => {
      if (!greeted && batch.some((event) => event.type === "hello")) return void (greeted = true); // being loaded already
      if (batch.some((event) => /^(hello|agent|stored|removed|asked|settled|run_began|run_ended)$/.test(event.type))) soon();
    });
    return () => (clearTimeout(timer), stop());
  }, []);
  return { ...state, load };
}
