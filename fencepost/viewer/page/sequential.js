// A history that is held against a sequential model: lanes, the longest order, the state after each step, the operation that fits nowhere.
// Owns: that picture and its own moment, the number of operations that have happened. Must not know how the order was found.

import { OUTCOME_SIGNS } from "./marks.js";
import { button, html, replace, svg, widthOf, words } from "./dom.js";
import { current, state, update } from "./state.js";

const LANE = 40, TOP = 12;
let done = { view: null, part: 0, count: 0 };

/** Make the panel once. */
export function makeSequential(root) {
  replace(root, html("div", { class: "panelhead" }, html("h2", { id: "sequential-heading" }, "Order"), html("div", { class: "tabs", role: "tablist", "aria-label": "Part of the history" }), html("div", { class: "tools" },
    button("‹", "One operation back in the order", () => moveTo(done.count - 1), { id: "order-back" }), html("span", { class: "counted" }), button("›", "One operation on in the order", () => moveTo(done.count + 1), { id: "order-on" }))),
  html("p", { class: "said" }), html("div", { class: "scroll picture" }), html("div", { class: "scroll states" }));
}

function moveTo(count) {
  done.count = count;
  update({});
}

/** Draw the part that is open. */
export function drawSequential(root) {
  const view = current(), sequential = view.sequential;
  root.hidden = !sequential;
  if (root.hidden) return;
  if (done.view !== view) done = { view, part: 0, count: sequential.parts[0].order.length };
  const part = sequential.parts[done.part];
  done.count = Math.min(Math.max(0, done.count), part.order.length);
  replace(root.querySelector(".tabs"), sequential.parts.length > 1 ? sequential.parts.map((one, index) => html("button", { type: "button", role: "tab", "aria-selected": String(index === done.part), onclick: () => { done = { view, part: index, count: one.order.length }; update({}); } }, one.name || "all")) : []);
  root.querySelector(".counted").textContent = `${done.count} of ${part.order.length}`;
  const last = done.count ? part.order[done.count - 1] : null;
  replace(root.querySelector(".said"), `Model ${sequential.model}. `, part.culprit
    ? html("span", null, `${part.order.length} operations happen in the order that is drawn${part.longest ? "" : ", or more"}; then `, html("b", { class: "bad" }, part.operations[part.culprit].words), " fits nowhere.")
    : "Every operation has its place in one order.", html("br", null), html("span", { class: "state" }, last === null ? `Before anything: state ${part.initial}.` : `After ${done.count}: state ${part.states[done.count - 1]}.`));
  replace(root.querySelector(".picture"), picture(view, part, widthOf(root, 300) - 8));
  replace(root.querySelector(".states"), table(part));
}

function picture(view, part, width) {
  const operations = Object.entries(part.operations);
  const processes = [...new Set(operations.map(([, one]) => one.process))].sort((a, b) => a - b);
  const left = 76, room = Math.max(width - left - 16, 200);
  const moments = [...new Set(operations.flatMap(([, one]) => [one.invoke, ...(one.complete >= 0 ? [one.complete] : [])]))].sort((a, b) => a - b);
  const wide = Math.max(room, moments.length * 26);
  const places = new Map(moments.map((moment, index) => [moment, left + ((index + 0.5) / Math.max(1, moments.length)) * wide]));
  const x = (moment) => places.get(moment);
  const y = (process) => TOP + processes.indexOf(process) * LANE;
  const height = TOP + processes.length * LANE + 14;
  const placed = new Map(part.order.slice(0, done.count).map((id, index) => [String(id), index]));
  const lanes = processes.map((process) => svg("g", { class: "lane client" }, svg("line", { x1: left, x2: left + wide, y1: y(process) + 16, y2: y(process) + 16, class: "laneline" }), words(6, y(process) + 20, `client ${process}`, "lanename")));
  const bars = operations.map(([id, one]) => {
    const from = x(one.invoke) - 6, until = one.complete >= 0 ? x(one.complete) + 6 : left + wide;
    const kinds = `bar ${one.complete < 0 ? "unknown" : "ok"}${part.proof.map(String).includes(id) ? " convicts" : ""}${String(part.culprit) === id ? " culprit" : ""}${placed.has(id) || String(part.culprit) === id ? "" : " future"}`;
    const index = view.operationById.get(id);
    return svg("g", { class: kinds, "data-operation": id, onclick: () => update({ selection: index === undefined ? null : { kind: "operation", index } }) },
      svg("title", null, `${one.words}, operation ${id}`), svg("rect", { x: from, y: y(one.process) + 5, width: Math.max(10, until - from), height: 22, rx: 4 }),
      words(from + (placed.has(id) ? 19 : 5), y(one.process) + 20, `${one.complete < 0 ? OUTCOME_SIGNS[2] : ""}${one.words}`.slice(0, Math.max(3, Math.floor((until - from - 16) / 5.6))), "barname"));
  });
  const way = part.order.slice(0, done.count).map((id, index) => ({ at: spot(part, index, x), y: y(part.operations[id].process) + 16, id, index }));
  const line = svg("path", { d: way.map((point, index) => `${index ? "L" : "M"}${point.at},${point.y}`).join(" "), class: "way" });
  const points = way.map((point) => svg("g", { class: `point${point.index === done.count - 1 ? " last" : ""}`, "data-order": point.index + 1, onclick: () => moveTo(point.index + 1) }, svg("title", null, `${point.index + 1}: ${part.operations[point.id].words}, then ${part.states[point.index]}`), svg("circle", { cx: point.at, cy: point.y, r: 8 }), words(point.at, point.y + 3.5, String(point.index + 1), "pointname")));
  return svg("svg", { width: left + wide + 8, height, viewBox: `0 0 ${left + wide + 8} ${height}`, class: "spacetime sequential", role: "img", "aria-label": `${operations.length} operations of ${processes.length} clients; ${done.count} of them in order` }, lanes, bars, line, points);
}

/** Where an operation happens: at its point in time, and a little after the one before it if both are at one moment. */
function spot(part, index, x) {
  let same = 0;
  for (let i = index - 1; i >= 0 && part.points[i] === part.points[index]; i--) same++;
  return x(part.points[index]) + same * 9;
}

function table(part) {
  const rows = part.order.map((id, index) => html("tr", { class: index + 1 === done.count ? "present" : index + 1 > done.count ? "future" : "", onclick: () => moveTo(index + 1) },
    html("td", null, index + 1), html("td", null, part.operations[id].words), html("td", null, `client ${part.operations[id].process}`), html("td", null, part.states[index])));
  const first = Math.max(0, Math.min(done.count - 12, rows.length - 24));
  return html("table", { class: "orders" }, html("thead", null, html("tr", null, ["", "operation", "by", "state after it"].map((name) => html("th", { scope: "col" }, name)))),
    html("tbody", null, first ? html("tr", null, html("td", { colspan: 4, class: "dim" }, `${first} before these`)) : null, rows.slice(first, first + 24),
      part.culprit && done.count === part.order.length ? html("tr", { class: "culprit" }, html("td", null, "✕"), html("td", null, part.operations[part.culprit].words), html("td", null, `client ${part.operations[part.culprit].process}`), html("td", null, "not possible in this state")) : null));
}
