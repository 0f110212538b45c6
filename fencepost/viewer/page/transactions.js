// Transactions at a moment: lanes of begin, commit and abort, and the same in a table. Owns: their drawing. Must not know logs.

import { NEVER, clientFactAt, fateAt, runLength } from "./data.js";
import { html, replace, svg, widthOf, words } from "./dom.js";
import { moment } from "./marks.js";
import { current, goTo, related, state, update } from "./state.js";

const LANE = 26, TOP = 18, MOST_LANES = 24, MOST_ROWS = 14;
const SIGNS = { open: "?", committed: "✓", aborted: "✕" };

/** Make the panel once. */
export function makeTransactions(root) {
  replace(root, html("div", { class: "panelhead" }, html("h2", { id: "transactions-heading" }, "Transactions"), html("span", { class: "dim count" })), html("div", { class: "body" }),
    html("details", { class: "legend" }, html("summary", null, "What is drawn"), html("p", null, "A bar lasts from the first request of a transaction to the answer of its end: ✓ committed, ✕ aborted, ? no end is known. An end that nobody answered counts as a commit from the first read_committed read that shows one of its records. The last stable offset is what brokers said in their answers to clients; a read_committed consumer reads up to there.")));
}

/** Draw the transactions of the run. */
export function drawTransactions(root) {
  const view = current(), step = state.step, body = root.querySelector(".body");
  root.hidden = !view.transactions.length;
  if (root.hidden) return;
  const count = { open: 0, committed: 0, aborted: 0 };
  for (const one of view.transactions) { const fate = fateAt(one, step); if (fate) count[fate] += 1; }
  const said = `${count.open} open, ${count.committed} committed, ${count.aborted} aborted at this moment`;
  root.querySelector(".count").textContent = said;
  replace(body, picture(view, step, widthOf(body, 280), said), table(view, step), stable(view, step));
}

/** The steps that are drawn: as many as the moment is easily found among. */
function spanOf(view) {
  const most = 240, first = view.count <= most ? 0 : Math.min(Math.max(0, state.step - Math.floor(most * 0.6)), view.count - most);
  return [first, Math.min(view.count - 1, first + most - 1)];
}

function picture(view, step, width, said) {
  const left = width < 560 ? 74 : 96, [first, last] = spanOf(view);
  const x = (at) => left + ((Math.min(Math.max(at, first), last) - first) / Math.max(1, last - first)) * (width - left - 16);
  const shown = view.transactions.filter((one) => one.began <= last && (one.ended === NEVER || one.ended >= first));
  const lanes = [...new Set(shown.map((one) => one.lane))].sort((a, b) => a - b).slice(0, MOST_LANES);
  const height = TOP + lanes.length * LANE + 6, marked = related();
  const shapes = lanes.map((lane, index) => svg("g", { class: "lane" }, svg("line", { x1: left, x2: width - 8, y1: TOP + index * LANE + 11, y2: TOP + index * LANE + 11, class: "laneline" }), words(4, TOP + index * LANE + 15, view.lanes[lane].label, "lanename")));
  for (const one of shown) {
    const place = lanes.indexOf(one.lane);
    if (place < 0) continue;
    shapes.push(span(view, one, x(one.began), x(one.ended === NEVER ? last : one.ended), TOP + place * LANE, step, marked));
  }
  const at = x(step);
  shapes.push(words(left, 12, `${moment(view.time[first])}`, "dim"), words(width - 10, 12, `${moment(view.time[last])}`, "dim", { "text-anchor": "end" }), svg("line", { x1: at, x2: at, y1: TOP - 2, y2: height, class: "present" }));
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "transactions", role: "img", "data-first": first, "data-last": last, "aria-label": `Transactions: ${said}. The table says the same.` }, shapes);
}

function span(view, one, from, until, y, step, marked) {
  const end = one.ended === NEVER ? "open" : ["open", "committed", "aborted"][one.fate], chosen = one.operation >= 0 && marked.operations.has(one.operation);
  const width = Math.max(6, until - from), label = `txn ${one.id}`;
  return svg("g", { class: `txn ends-${end}${chosen ? " chosen" : ""}${one.began > step ? " future" : ""}`, "data-transaction": one.id, "data-began": one.began, "data-ended": one.ended, "data-fate": fateAt(one, step), onclick: () => choose(one) },
    svg("title", null, inWords(view, one)),
    svg("rect", { x: from, y, width, height: 22, rx: 3, class: "txnbody" }),
    end === "open" ? svg("rect", { x: from, y, width, height: 22, rx: 3, fill: "url(#hatch)", class: "patterned" }) : end === "aborted" ? svg("rect", { x: from, y, width, height: 22, rx: 3, fill: "url(#cross)", class: "patterned" }) : null,
    svg("line", { x1: from, x2: from, y1: y - 1, y2: y + 23, class: "txnbegin" }),
    width > label.length * 6 + 22 ? words(from + 5, y + 15, label, "txnname") : null,
    words(from + width - 4, y + 15, width > 14 ? SIGNS[end] : "", "txnend", { "text-anchor": "end" }));
}

function inWords(view, one) {
  const end = one.ended === NEVER ? "no end is known" : `${one.fate === 2 ? "aborted" : "committed"} ${one.ended >= view.count ? "after this page ends" : `at ${moment(view.time[Math.max(0, one.ended)])}`}`;
  return `transaction ${one.id} of ${view.lanes[one.lane].label}${one.producer ? `, producer ${one.producer[0]} in epoch ${one.producer[1]}` : ""}: ${end}`;
}

function choose(one) {
  if (one.operation >= 0) update({ selection: { kind: "operation", index: one.operation } });
}

/** Those that the moment is about: open ones, then the last that ended, then the next that begins. */
function around(view, step) {
  const open = view.transactions.filter((one) => fateAt(one, step) === "open");
  const ended = view.transactions.filter((one) => !["", "open"].includes(fateAt(one, step))).sort((a, b) => b.ended - a.ended);
  const next = view.transactions.filter((one) => one.began > step).slice(0, 1);
  return [...open.slice(-MOST_ROWS), ...ended, ...next].slice(0, MOST_ROWS);
}

function table(view, step) {
  const when = (at) => (at === NEVER ? "not known" : at < 0 ? "before this page" : at >= view.count ? "after this page" : html("button", { type: "button", class: "small", onclick: () => goTo(at) }, `${moment(view.time[at])}`));
  const rows = around(view, step).map((one) => {
    const fate = fateAt(one, step);
    return html("tr", { "data-transaction": one.id, "data-fate": fate }, html("th", { scope: "row" }, one.operation >= 0 ? html("button", { type: "button", class: "small", onclick: () => choose(one) }, String(one.id)) : String(one.id)),
      html("td", null, view.lanes[one.lane].label), html("td", null, one.producer ? `${one.producer[0]}, epoch ${one.producer[1]}` : "not recorded"),
      html("td", { class: `fate ${fate}` }, fate ? `${SIGNS[fate]} ${fate}` : "not begun"), html("td", null, when(one.began)), html("td", null, when(one.ended)), html("td", null, wrote(view, one)));
  });
  return html("div", { class: "scroll" }, html("table", { class: "transactiontable" }, html("thead", null, html("tr", null, ["transaction", "client", "producer", "now", "begins", "ends", "records"].map((name) => html("th", { scope: "col" }, name)))), html("tbody", null, rows)));
}

function wrote(view, one) {
  const parts = one.records.slice(0, 6).map(([partition, first, values]) => {
    const name = partition < 0 ? "elsewhere" : view.partitions[partition], count = runLength(values);
    return first < 0 ? `${name}: ${count} at unknown offsets` : `${name} ${first}${count > 1 ? ` to ${first + count - 1}` : ""}`;
  });
  return parts.join(", ") + (one.records.length > 6 ? ` and ${one.records.length - 6} more` : "") || "none";
}

function stable(view, step) {
  const known = view.partitions.map((name, number) => [name, clientFactAt(view, number, "last_stable_offset", step)]).filter(([, offset]) => offset !== null).slice(0, 20);
  return known.length ? html("p", { class: "dim small stable" }, `last stable offset as clients were shown: ${known.map(([name, offset]) => `${name} ${offset}`).join(" · ")}`) : null;
}
