// Text as the page shows it: invisible and direction-changing characters made visible, numbers, times.
import { html } from "./vendor.js";

// Joiners and selectors inside emoji, and joiners between letters that are drawn differently beside them, are normal text.
const UNSEEN = [
  String.raw`\r(?!\n)`,
  String.raw`[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb]`,
  String.raw`(?<!\p{Extended_Pictographic}|\p{Emoji_Modifier}|[0-9#*](?=\ufe0f\u20e3))[\ufe0e\ufe0f]`,
  String.raw`(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]|(?![\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{sc=Inherited}])[\p{L}\p{M}])[\u200c\u200d]`,
  String.raw`[\u{16fe4}\u{1bca0}-\u{1bca3}\u{1d159}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\ud800-\udfff]`,
];
const SPACES = String.raw`[\u00a0\u1680\u2000-\u200a\u202f\u205f]|(?<![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}])\u3000`;
const PROSE = new RegExp(UNSEEN.join("|"), "gu"); // in a sentence, a space that does not break is a space
/** Everything that hides, reorders, rings a bell, or passes for a space and is none. */
export const HIDDEN = new RegExp([...UNSEEN, SPACES].join("|"), "gu");
const NAMES = { 0x1b: "ESC", 0x07: "BEL", 0x08: "BS", 0x00: "NUL", 0x0d: "CR", 0x7f: "DEL" };

function nameOf(character) {
  const code = character.codePointAt(0);
  return NAMES[code] || "U+" + code.toString(16).toUpperCase().padStart(4, "0");
}

/** The text as one string in which nothing is hidden; for titles, labels and options. */
export function plain(text, hidden = HIDDEN) {
  return String(text ?? "").replace(hidden, (character) => `‹${nameOf(character)}›`);
}

/** The text of a sentence as nodes. */
export function showProse(text) {
  return show(text, PROSE);
}

/** The text as nodes: hidden characters become small labels. */
export function show(text, hidden = HIDDEN) {
  text = String(text ?? "");
  if (text.search(hidden) < 0) return text;
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(hidden)) {
    if (nodes.length > 4000) break;
    nodes.push(text.slice(end, found.index), html`<span class="esc">${nameOf(found[0])}</span>`);
    end = found.index + found[0].length;
  }
  nodes.push(plain(text.slice(end), hidden));
  return nodes;
}

function clip(text, characters) {
  text = String(text ?? "");
  return text.length > characters ? text.slice(0, characters - 1).replace(/[\ud800-\udbff]$/, "") + "…" : text;
}

/** A value on one line. */
export function oneLine(value, characters = 120) {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return clip(text.replace(/[ \t\n\r]+/g, " ").trim(), characters);
}

const WHOLE = new Intl.NumberFormat("en");
export const count = (number) => WHOLE.format(number ?? 0);

export function many(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function tokens(number) {
  if (!number) return "0";
  if (number < 1000) return String(number);
  if (number < 1e6) return (number / 1e3).toFixed(number < 1e4 ? 1 : 0) + "k";
  return (number / 1e6).toFixed(2) + "M";
}

export function money(usd) {
  if (usd === null || usd === undefined) return "no price";
  if (usd === 0) return "$0";
  return "$" + usd.toFixed(usd < 0.01 ? 4 : usd < 1 ? 3 : 2);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0.0095) return Math.max(0, seconds * 1000).toFixed(seconds < 0.00095 ? 0 : 1) + " ms";
  if (seconds < 1) return Math.round(seconds * 1000) + " ms";
  if (seconds < 60) return seconds.toFixed(1) + " s";
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
export const YEAR = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", year: "numeric" });
const CLOCK = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hour12: false });
const WHEN = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium", hour12: false });

export const clock = (at) => (at ? CLOCK.format(at * 1000) : "");
export const when = (at) => (at ? WHEN.format(at * 1000) : "");

/** How long ago, in the fewest words. */
export function ago(at, now = Date.now() / 1000) {
  if (!at) return "";
  const seconds = Math.max(0, now - at);
  if (seconds < 45) return "now";
  if (seconds < 3600) return Math.max(1, Math.round(seconds / 60)) + " min";
  const date = new Date(at * 1000);
  if (date.toDateString() === new Date(now * 1000).toDateString()) return CLOCK.format(date);
  return (date.getFullYear() === new Date(now * 1000).getFullYear() ? DAY : YEAR).format(date);
}
