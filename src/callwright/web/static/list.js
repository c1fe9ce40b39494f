// A windowed list: only the rows near the view exist, however many there are.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";

const MARGIN = 500; // pixels rendered above and below the view
const GUESS = 56;
const NEAR_END = 48;

/** Heights of rows: measured where known, guessed elsewhere, with running sums for positions. */
class Heights {
  constructor() {
    this.known = [];
    this.sums = new Float64Array(1);
    this.valid = 0; // sums up to here are right
    this.total = 0;
    this.measured = 0;
  }
  get guess() {
    return this.measured > 8 ? this.total / this.measured : GUESS;
  }
  set(index, height) {
    const before = this.known[index];
    if (before === height) return false;
    if (before === undefined) this.measured++;
    this.total += height - (before ?? 0);
    this.known[index] = height;
    this.valid = Math.min(this.valid, index);
    return true;
  }
  forget() {
    Object.assign(this, new Heights());
  }
  top(index, rows) {
    if (this.sums.length <= rows) {
      const longer = new Float64Array(Math.max(rows + 1, this.sums.length * 2));
      longer.set(this.sums);
      this.sums = longer;
    }
    if (this.valid < index) {
      const guess = this.fixed ?? (this.fixed = this.guess);
      for (let at = this.valid; at < rows; at++) this.sums[at + 1] = this.sums[at] + (this.known[at] ?? guess);
      this.valid = rows;
    }
    return this.sums[index];
  }
  at(offset, rows) {
    this.top(rows, rows);
    let low = 0;
    let high = rows;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.sums[middle + 1] <= offset) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, Math.max(0, rows - 1));
  }
}

/** Where the list rests: at its end, or at the first open question if those after it fill the view. */
function endOf(element) {
  const end = element.scrollHeight - element.clientHeight;
  const question = element.querySelector("[data-question]");
  if (!question) return end;
  return Math.min(end, question.getBoundingClientRect().top - element.getBoundingClientRect().top + element.scrollTop - 72);
}

/**
 * `rows` rows, drawn by `row(index)`; `tail` stands after the last one. `onWindow(first, last)` says which rows are
 * near the view. `handle.current` gets `show(index)` and `toEnd()`.
 */
export function WindowedList({ rows, row, tail, onWindow, handle, label, name, onEnd }) {
  const box = useRef(null);
  const inner = useRef(null);
  const heights = useRef(null);
  if (!heights.current) heights.current = new Heights();
  const [view, setView] = useState([Math.max(0, rows - 12), rows]);
  const state = useRef({ atEnd: true, anchor: null, target: null });
  const current = useRef({});
  current.current = { rows, onWindow, onEnd };

  useEffect(() => {
    heights.current.forget();
    state.current = { atEnd: true, anchor: null, target: null };
  }, [name]);

  const place = () => {
    const element = box.current;
    if (!element) return;
    const { rows } = current.current;
    const tall = heights.current;
    const top = element.scrollTop - (inner.current?.offsetTop ?? 0);
    const first = rows ? tall.at(Math.max(0, top - MARGIN), rows) : 0;
    const last = rows ? Math.min(rows, tall.at(top + element.clientHeight + MARGIN, rows) + 1) : 0;
    setView((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    current.current.onWindow?.(first, last);
  };

  const settle = () => {
    const element = box.current;
    if (!element) return;
    const { rows } = current.current;
    const tall = heights.current;
    let changed = false;
    for (const node of inner.current.children) {
      if (node.dataset.row !== undefined) changed = tall.set(+node.dataset.row, node.getBoundingClientRect().height) || changed;
    }
    const now = state.current;
    if (now.target !== null && now.target < rows) {
      element.scrollTop = Math.max(0, inner.current.offsetTop + tall.top(now.target, rows) - element.clientHeight / 3);
    } else if (now.atEnd) {
      element.scrollTop = Math.max(element.scrollTop, endOf(element)); // never back up from the buttons of a tall card
    } else if (changed && now.anchor) {
      element.scrollTop = inner.current.offsetTop + tall.top(Math.min(now.anchor.index, rows), rows) + now.anchor.offset;
    }
    place();
  };

  const onScroll = () => {
    const element = box.current;
    const now = state.current;
    const { rows } = current.current;
    const end = endOf(element) - element.scrollTop < NEAR_END;
    if (end !== now.atEnd) current.current.onEnd?.(end);
    now.atEnd = end;
    const top = element.scrollTop - inner.current.offsetTop;
    const index = rows ? heights.current.at(Math.max(0, top), rows) : 0;
    now.anchor = { index, offset: top - heights.current.top(index, rows) };
    place();
  };

  useLayoutEffect(settle);
  useEffect(() => {
    const watcher = new ResizeObserver(settle);
    watcher.observe(inner.current);
    watcher.observe(box.current);
    const free = () => (state.current.target = null); // the user's own scrolling ends a jump
    for (const event of ["wheel", "touchstart", "pointerdown", "keydown"]) box.current.addEventListener(event, free, { passive: true });
    return () => watcher.disconnect();
  }, []);

  handle.current = {
    show(index) {
      state.current.atEnd = false;
      state.current.target = index;
      settle();
      setTimeout(() => state.current.target === index && (state.current.target = null), 1200);
    },
    toEnd() {
      Object.assign(state.current, { atEnd: true, target: null });
      current.current.onEnd?.(true);
      settle();
    },
    box,
  };

  const tall = heights.current;
  const [first, last] = [Math.min(view[0], rows), Math.min(Math.max(view[1], view[0]), rows)];
  const visible = [];
  for (let index = first; index < last; index++) visible.push(html`<div class="row" key=${index} data-row=${index}>${row(index)}</div>`);
  return html`<div class="scroll" ref=${box} onScroll=${onScroll} tabindex="0" role="region" aria-label=${label}>
    <div class="rows" ref=${inner}>
      <div key="above" style=${{ height: tall.top(first, rows) + "px" }}></div>
      ${visible}
      <div key="below" style=${{ height: tall.top(rows, rows) - tall.top(last, rows) + "px" }}></div>
      <div key="tail" class="tail">${tail}</div>
    </div>
  </div>`;
}
