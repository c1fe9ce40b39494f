// Markdown as virtual nodes. No HTML string is ever made, so nothing in a text can become markup.
import { h, html, useMemo } from "./vendor.js";
import { show, showProse } from "./text.js";

// Texts come from anywhere: no pattern here may try one stretch of a text in more than a bounded number of ways.
const FENCE = /^( {0,3})(`{3,}|~{3,})[^`]*$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/s;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const DEPTH = 8;

export function Markdown({ text }) {
  // the same nodes for the same text: a page that is drawn again for another reason neither parses nor compares them
  return useMemo(() => html`<div class="md">${blocks(String(text ?? "").replace(/\r\n/g, "\n").split("\n"), 0)}</div>`, [text]);
}

const PIECE = 400; // characters

/** A growing text in pieces that end between blocks: only the last one changes. */
export function GrowingMarkdown({ text }) {
  const pieces = [];
  let start = 0;
  let fenced = false;
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at) + 1;
    const line = text.slice(at, end);
    if (/^ {0,3}(```|~~~)/.test(line)) fenced = !fenced;
    at = end;
    if (!fenced && at - start > PIECE && !line.trim()) {
      pieces.push(text.slice(start, at));
      start = at;
    }
  }
  pieces.push(text.slice(start));
  return pieces.map((piece, place) => html`<${Markdown} key=${place} text=${piece} />`);
}

function blocks(lines, depth) {
  const nodes = [];
  let paragraph = [];
  const flush = () => {
    if (paragraph.length) nodes.push(html`<p>${inline(paragraph.join("\n"))}</p>`);
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    let found;
    if (fence) {
      flush();
      const end = findFenceEnd(lines, at + 1, fence[2]);
      nodes.push(html`<pre class="code" tabindex="0" role="group" aria-label="code"><code>${show(lines.slice(at + 1, end).join("\n"))}</code></pre>`);
      at = end;
    } else if (!line.trim()) {
      flush();
    } else if ((found = /^ {0,3}(#{1,6})\s+(.*)$/s.exec(line))) {
      flush();
      // the page's own headings come first in the outline, so those of a message are one level of emphasis
      nodes.push(html`<p class="h h${found[1].length}">${inline(withoutMarks(found[2]))}</p>`);
    } else if (RULE.test(line)) {
      flush();
      nodes.push(html`<hr />`);
    } else if (/^ {0,3}>/.test(line) && depth < DEPTH) {
      flush();
      const end = findEnd(lines, at, (next) => /^ {0,3}>/.test(next));
      nodes.push(html`<blockquote>${blocks(lines.slice(at, end).map((next) => next.replace(/^ {0,3}> ?/, "")), depth + 1)}</blockquote>`);
      at = end - 1;
    } else if (ITEM.test(line) && depth < DEPTH) {
      flush();
      const [list, end] = readList(lines, at, depth);
      nodes.push(list);
      at = end - 1;
    } else if (line.includes("|") && isTableLine(lines[at + 1] || "")) {
      flush();
      const end = findEnd(lines, at + 2, (next) => next.includes("|") && next.trim());
      nodes.push(table(lines.slice(at, end)));
      at = end - 1;
    } else {
      paragraph.push(line);
    }
  }
  flush();
  return nodes;
}

/** The text of a heading without the marks that may close it. */
function withoutMarks(text) {
  let end = text.length;
  while (end && text[end - 1] === "#") end--;
  return text.slice(0, end).trimEnd();
}

/** Whether a line divides the head of a table from its rows. */
function isTableLine(line) {
  const cells = line.trim().replace(/^\||\|$/g, "").split("|");
  return line.includes("|") && cells.every((cell) => /^:?-+:?$/.test(cell.trim()));
}

function findEnd(lines, at, belongs) {
  while (at < lines.length && belongs(lines[at])) at++;
  return at;
}

function findFenceEnd(lines, at, mark) {
  const close = new RegExp(`^ {0,3}${mark[0] === "`" ? "`" : "~"}{${mark.length},}\\s*$`);
  return findEnd(lines, at, (line) => !close.test(line));
}

function readList(lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const items = [];
  while (at < lines.length) {
    const found = ITEM.exec(lines[at]);
    if (!found || found[1].length !== indent.length || /\d/.test(found[2]) !== ordered) break;
    const own = [found[3]];
    const inside = found[1].length + found[2].length + 1;
    at++;
    while (at < lines.length) {
      const next = lines[at];
      const deeper = next.match(/^ */)[0].length > indent.length;
      if (next.trim() ? !deeper && (ITEM.test(next) || !lines[at - 1].trim() || FENCE.test(next)) : !isContinued(lines, at, indent.length)) break;
      own.push(next.slice(Math.min(inside, next.match(/^ */)[0].length)));
      at++;
    }
    items.push(item(own, depth));
  }
  return [ordered ? html`<ol start=${parseInt(mark, 10)}>${items}</ol>` : html`<ul>${items}</ul>`, at];
}

/** Whether the text after a blank line still belongs to the list. */
function isContinued(lines, at, indent) {
  const next = lines[at + 1];
  if (!next || !next.trim()) return false;
  return next.match(/^ */)[0].length > indent || (ITEM.test(next) && next.match(/^ */)[0].length === indent);
}

function item(lines, depth) {
  while (lines.length > 1 && !lines.at(-1).trim()) lines.pop();
  const task = /^\[([ xX])\] /.exec(lines[0]);
  if (task) lines[0] = lines[0].slice(4);
  const content = lines.length === 1 ? inline(lines[0]) : blocks(lines, depth + 1);
  return html`<li class=${task ? "task" : ""}>${task && (task[1] === " " ? "☐ " : "☑ ")}${content}</li>`;
}

function table(lines) {
  const rows = lines.map((line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|")));
  const sides = rows[1].map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "mid" : "num") : ""));
  const cells = (row, tag) => row.slice(0, sides.length).map((cell, place) => h(tag, { class: sides[place] }, inline(cell)));
  return html`<div class="wide" tabindex="0" role="group" aria-label="table"><table><thead><tr>${cells(rows[0], "th")}</tr></thead>
    <tbody>${rows.slice(2).map((row) => html`<tr>${cells(row, "td")}</tr>`)}</tbody></table></div>`;
}

const INLINE =
  /(?<!`)(`{1,20})([^`]|[^`][\s\S]{0,5000}?[^`])\1(?!`)|\\([\\`*_{}\[\]()#+\-.!|~<>])|\*\*(?=\S)([\s\S]{1,1000}?\S)\*\*|(?<!\w)__(?=\S)([\s\S]{1,1000}?\S)__(?!\w)|(?<![\w*])\*(?=[^\s*])([^*\n]{0,999}[^\s*])\*(?!\*)|(?<!\w)_(?=[^\s_])([^_\n]{0,999}[^\s_])_(?!\w)|~~([^~\n]{1,999})~~|!?\[([^[\]\n]{0,500})\]\(\s{0,9}<?([^)[\s>]{1,2000})>?(?:\s{1,9}"[^"\n]{0,500}")?\s{0,9}\)|(https?:\/\/[^\s<>()]{1,2000}[^\s<>().,;:!?'"])|( {2,9}|\\)\n/g;

function inline(text, depth = 0) {
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > end) nodes.push(showProse(text.slice(end, found.index)));
    end = found.index + found[0].length;
    nodes.push(span(found, depth));
  }
  if (end < text.length) nodes.push(showProse(text.slice(end)));
  return nodes;
}

function span([whole, , code, escaped, strong, strong2, em, em2, gone, label, target, bare, broken], depth) {
  const inner = (part) => (depth < DEPTH ? inline(part, depth + 1) : showProse(part));
  if (code !== undefined) return html`<code>${show(/^ .* $/s.test(code) && code.trim() ? code.slice(1, -1) : code)}</code>`;
  if (escaped) return show(escaped);
  if (strong || strong2) return html`<strong>${inner(strong || strong2)}</strong>`;
  if (em || em2) return html`<em>${inner(em || em2)}</em>`;
  if (gone) return html`<del>${inner(gone)}</del>`;
  if (target) return link(target, label ? show(label) : show(target), label && label !== target);
  if (bare) return link(bare, show(bare));
  return broken !== undefined ? html`<br />` : show(whole);
}

/** Only web addresses become links, and a link whose text says something else names its address. */
function link(target, label, hides) {
  if (!/^https?:\/\//i.test(target)) return html`${label}${hides ? html` <span class="muted">(${show(target)})</span>` : ""}`;
  return html`<a href=${target} target="_blank" rel="noopener noreferrer nofollow">${label}</a>${hides && html` <span class="muted host">(${show(hostOf(target))})</span>`}`;
}

function hostOf(address) {
  try {
    return new URL(address).host;
  } catch {
    return address;
  }
}
