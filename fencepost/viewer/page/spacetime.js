// The space-time diagram: lanes of ZooKeeper, brokers, clients and an application's processes; messages as arrows, operations as bars, faults where they hit.
// Owns: its window and its geometry. Must not know how messages were derived.

import { NEVER, lastAtMost, nameOf, operationAt, textOf } from "./data.js";
import { FATES, MESSAGES, OUTCOMES, OUTCOME_SIGNS, duration, roleOf, moment } from "./marks.js";
import { button, html, replace, svg, widthOf, words } from "./dom.js";
import { current, goTo, related, state, update } from "./state.js";
import { momentInWords } from "./bar.js";

const TOP = 24, ZK = 34, BROKER = 46, CLIENT = 26, SUBLANE = 13, MOST_SUBLANES = 3, MOST_ARROWS = 400;
let parts = null;
let shown = { view: -1, first: 0, span: 0 };

/** Make the panel once. */
export function makeSpacetime(root) {
  parts = { picture: html("div", { class: "scroll picture", tabindex: 0, role: "group" }), tools: html("div", { class: "tools" }), kinds: html("div", { class: "chips", role: "group", "aria-label": "Messages that are drawn" }), root };
  replace(root, html("div", { class: "panelhead" }, html("h2", { id: "spacetime-heading" }, "Messages"), parts.kinds, parts.tools), parts.picture, legend());
  replace(parts.tools,
    button("−", "More moments (minus)", () => zoom(1.5)), button("+", "Fewer moments (plus)", () => zoom(1 / 1.5)),
    button("even", "Moments evenly spaced, or by time", () => update({ even: !state.even }), { id: "even" }));
  parts.picture.addEventListener("keydown", moveByKey);
}

function legend() {
  return html("details", { class: "legend" }, html("summary", null, "How messages are known"),
    html("p", null, "A trace records what was done, not what was sent. A solid arrow has both ends in the trace. A dashed arrow has one: it left not earlier than drawn. A dashed arrow without length says who sent it, not when. ✕ is lost: no later event shows it. “late” took more than a second. Heartbeats, fetches that brought nothing and metadata requests are in no trace, so they are not drawn. On the lane of an application's process are its own lines: ⇑ started, → sent, ✓ acknowledged, ✕ failed, ＋ assigned, ↓ received, ● processed, ◆ committed, － revoked or lost, ■ stopped. Between processes only what follows from offsets is in order: the axis counts places in that order, and is no time."));
}

/** Show more or fewer moments. */
export function zoom(factor) {
  update({ span: Math.round(Math.min(600, Math.max(8, (state.span || shown.span || 40) * factor))) });
}

function moveByKey(event) {
  const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  const view = current();
  if (event.shiftKey) { chooseOther(view, by); return; }
  const bars = view.operations.filter((one) => one.invoked <= shown.first + shown.span && (one.answered === NEVER || one.answered >= shown.first));
  if (!bars.length) return;
  const place = state.selection && state.selection.kind === "operation" ? bars.findIndex((one) => one.index === state.selection.index) : -1;
  update({ selection: { kind: "operation", index: bars[Math.min(bars.length - 1, Math.max(0, place + by))].index } });
}

/** Choose the next of the messages and faults that are drawn, in order of their beginning. */
function chooseOther(view, by) {
  const drawn = (name) => [...new Set([...parts.picture.querySelectorAll(`[data-${name}]`)].map((one) => Number(one.dataset[name])))];
  const messages = drawn("message").map((index) => ({ kind: "message", index, at: view.messages[index].sent }));
  const faults = drawn("fault").map((index) => ({ kind: "fault", index, at: view.faults[index].began }));
  const all = [...messages, ...faults].sort((a, b) => a.at - b.at);
  if (!all.length) return;
  const place = state.selection ? all.findIndex((one) => one.kind === state.selection.kind && one.index === state.selection.index) : -1;
  const { kind, index } = all[Math.min(all.length - 1, Math.max(0, place + by))];
  update({ selection: { kind, index } });
}

/** The first and the number of moments that are shown; the window stays until the moment leaves its middle. */
function windowOf(view, width) {
  const span = Math.min(Math.max(view.count, 2), state.span || Math.max(12, Math.floor(width / 20)));
  const inside = shown.view === state.active && shown.span === span && state.step >= shown.first + span * 0.12 && state.step <= shown.first + span * 0.82;
  const most = Math.max(0, view.count - span);
  if (!inside) shown = { view: state.active, first: Math.round(Math.min(most, Math.max(0, state.step - span * 0.55))), span };
  shown.first = Math.min(shown.first, most);
  return shown;
}

/** Draw the diagram around the moment. */
export function drawSpacetime() {
  const view = current();
  parts.root.hidden = !view.count;
  if (!view.count) return;
  drawKinds(view);
  parts.tools.querySelector("#even").hidden = !view.timed;
  parts.tools.querySelector("#even").textContent = state.even ? "by order" : "by time";
  const width = widthOf(parts.picture, 300), narrow = width < 560;
  const left = narrow ? 74 : view.lanes.some((lane) => lane.label.length > 14) ? 168 : 96; // a client's own name needs room
  const window_ = windowOf(view, width - left);
  const last = Math.min(view.count - 1, window_.first + window_.span - 1);
  const from = view.time[window_.first], until = Math.max(view.time[last], from + 1);
  const room = width - left - 14;
  const ofTime = (time) => left + 6 + ((Math.min(Math.max(time, from), until) - from) / (until - from)) * room;
  const ofStep = (step) => left + 6 + ((Math.min(Math.max(step, window_.first - 1), last + 1) - window_.first) / Math.max(1, window_.span - 1)) * room;
  const x = state.even ? ofStep : (step) => (step < window_.first ? left : step > last ? width - 4 : ofTime(view.time[step]));
  const geometry = { x, left, width, first: window_.first, last, ...rows(view, window_, last) };
  const marked = related();
  const shapes = [
    ...laneShapes(view, geometry, marked), ...roleShapes(view, geometry), ...faultShapes(view, geometry), ...axis(view, geometry),
    ...barShapes(view, geometry, marked), ...arrowShapes(view, geometry, marked), ...eventShapes(view, geometry, marked), ...present(view, geometry),
  ];
  const { who, what } = momentInWords(view, state.step);
  replace(parts.picture, svg("svg", { width, height: geometry.height, viewBox: `0 0 ${width} ${geometry.height}`, class: "spacetime", role: "img",
    "data-first": window_.first, "data-last": last, "aria-label": `Messages and operations around ${moment(view.time[state.step])}. Now: ${who}: ${what}. ` }, shapes));
  parts.picture.setAttribute("aria-label", `Messages and operations around ${moment(view.time[state.step])}. Arrow up and down choose an operation, with Shift a message or a fault.`);
}

let kindsFor = "";

function drawKinds(view) {
  const key = `${state.active} ${[...state.messages].sort()}`;
  if (key === kindsFor) return;
  kindsFor = key;
  const there = new Set(view.messages.map((one) => one.kind));
  replace(parts.kinds, MESSAGES.map(({ kind, word }, number) => (there.has(number) ? html("button", {
    type: "button", class: `chip message-${kind}`, "aria-pressed": String(state.messages.has(number)),
    onclick: () => { const next = new Set(state.messages); if (!next.delete(number)) next.add(number); update({ messages: next }); },
  }, word) : null)));
}

/** Where each lane stands; operations of one client that overlap get lanes of their own. */
function rows(view, window_, last) {
  const y = [], bars = [];
  let at = TOP;
  const byLane = new Map();
  for (const one of view.operations) {
    if (one.invoked > last || (one.answered !== NEVER && one.answered < window_.first)) continue;
    if (!byLane.has(one.lane)) byLane.set(one.lane, []);
    byLane.get(one.lane).push(one);
  }
  view.lanes.forEach((lane, number) => {
    if (lane.kind === "broker" && state.brokers && !state.brokers.has(Number(lane.id.slice(1)))) { y.push(null); return; }
    if (lane.kind === "client" && !byLane.has(number)) { y.push(null); return; }
    if (lane.kind !== "client") {
      const height = { zookeeper: ZK, broker: BROKER }[lane.kind] || CLIENT;
      y.push({ top: at, height, middle: at + height / 2 });
      at += height;
      return;
    }
    const ends = [], all = byLane.get(number);
    // a client that heard nothing has given up when it goes on with another operation
    const until = (one) => (isOpen(view, one) ? (all.find((next) => next.invoked > one.invoked && next.function === one.function) || { invoked: last + 1 }).invoked - 1 : one.answered !== NEVER ? one.answered : Math.max(one.invoked, (all.find((next) => next.invoked > one.invoked) || { invoked: one.invoked + 4 }).invoked - 1));
    for (const one of byLane.get(number)) {
      let row = ends.findIndex((end) => end < one.invoked);
      if (row < 0) row = ends.length < MOST_SUBLANES ? ends.length : MOST_SUBLANES - 1;
      ends[row] = until(one);
      bars.push({ one, lane: number, row, end: until(one) });
    }
    const height = Math.max(CLIENT, ends.length * SUBLANE + 10);
    y.push({ top: at, height, middle: at + height / 2 });
    at += height;
  });
  return { y, bars, height: at + 22 };
}

function laneShapes(view, geometry, marked) {
  return view.lanes.flatMap((lane, number) => {
    const row = geometry.y[number];
    if (!row) return [];
    const chosen = lane.kind === "broker" && marked.brokers.has(Number(lane.id.slice(1)));
    return [svg("g", { class: `lane ${lane.kind}${chosen ? " chosen" : ""}`, onclick: lane.kind === "broker" ? () => update({ selection: { kind: "broker", broker: Number(lane.id.slice(1)) } }) : null },
      svg("rect", { x: 0, y: row.top, width: geometry.width, height: row.height, class: "lanebody" }),
      svg("line", { x1: geometry.left, x2: geometry.width, y1: row.middle, y2: row.middle, class: "laneline" }),
      svg("title", null, lane.label), words(6, row.middle + 4, lane.label.length * 6 < geometry.left ? lane.label : `${lane.label.slice(0, Math.floor(geometry.left / 6) - 2)}…`, "lanename"))];
  });
}

/** What each broker is to the partition, as the ground of its lane. */
function roleShapes(view, geometry) {
  return view.lanes.flatMap((lane, number) => {
    const row = geometry.y[number];
    if (!row || lane.kind !== "broker") return [];
    const track = (view.facts[`p${state.partition}${lane.id}`] || {}).letter;
    if (!track) return [];
    const shapes = [];
    for (let i = Math.max(0, lastAtMost(track.steps, geometry.first)); i < track.steps.length && track.steps[i] <= geometry.last; i++) {
      const from = geometry.x(Math.max(track.steps[i], geometry.first)), next = i + 1 < track.steps.length ? track.steps[i + 1] : geometry.last + 1;
      const until = geometry.x(Math.min(next, geometry.last + 1));
      const role = roleOf(track.values[i]);
      if (until > from) shapes.push(svg("rect", { x: from, y: row.middle - 8, width: until - from, height: 16, class: `role ${role.kind}` }, svg("title", null, `${lane.label}: ${role.word}`)));
    }
    return shapes;
  });
}

function faultShapes(view, geometry) {
  const used = new Map();
  return view.faults.flatMap((fault, index) => {
    const until = fault.ended === NEVER ? geometry.last + 1 : fault.ended;
    if (fault.began > geometry.last || until < geometry.first) return [];
    const nodes = fault.nodes.length || fault.broker < 0 ? fault.nodes : [fault.broker];
    const lanes = nodes.length ? nodes.map((node) => view.lanes.findIndex((lane) => lane.id === `b${node}`)) : [0];
    return lanes.flatMap((number) => {
      const row = geometry.y[number];
      if (!row) return [];
      const place = used.get(number) || 0;
      used.set(number, place + 1);
      const from = geometry.x(Math.max(fault.began, geometry.first)), width = Math.max(4, geometry.x(Math.min(until, geometry.last + 1)) - from);
      const up = place % 2 === 0, y = up ? row.top + 2 : row.top + row.height - 9 - 2;
      const chosen = state.selection && state.selection.kind === "fault" && state.selection.index === index;
      return [svg("g", { class: chosen ? "fault chosen" : "fault", "data-fault": index, onclick: (event) => { event.stopPropagation(); update({ selection: { kind: "fault", index } }); } },
        svg("title", null, textOf(view, fault.text)),
        svg("rect", { x: from, y, width, height: 9, rx: 2, class: "faultbar" }), svg("rect", { x: from, y, width, height: 9, rx: 2, fill: "url(#hatch)" }),
        words(from + 3, y + 8, width > fault.kind.length * 5.4 ? fault.kind.replaceAll("_", " ") : "⚡", "faultname"))];
    });
  });
}

function axis(view, geometry) {
  const shapes = [];
  let free = 0;
  for (let step = geometry.first; step <= geometry.last; step++) {
    const at = geometry.x(step);
    if (at < free || at > geometry.width - 50) continue;
    shapes.push(words(at, 13, `${moment(view.time[step], 3)}`, "axis"), svg("line", { x1: at, x2: at, y1: 17, y2: TOP, class: "axisline" }));
    free = at + 74;
  }
  return shapes;
}

function barShapes(view, geometry, marked) {
  return geometry.bars.map(({ one, lane, row, end }) => {
    const place = geometry.y[lane];
    const from = geometry.x(one.invoked), open = one.answered === NEVER;
    const until = Math.max(from + 10, geometry.x(open ? end : one.answered));
    const y = place.top + 5 + row * SUBLANE, convicts = view.convicting.has(one.index), chosen = marked.operations.has(one.index);
    const whole = transactionIs(view, one), fate = whole ? ["open", "committed", "aborted"][whole.fate] : "";
    const label = whole ? `txn ${one.id} ${{ open: "?", committed: "✓ commits", aborted: "✕ aborts" }[fate]}` : `${OUTCOME_SIGNS[one.outcome]}${one.function} ${one.id}`;
    const width = Math.max(4, until - from);
    return svg("g", { class: `bar ${OUTCOMES[one.outcome]}${convicts ? " convicts" : ""}${chosen ? " chosen" : ""}${one.invoked > state.step ? " future" : ""}${whole ? ` transaction ends-${fate}` : ""}`, "data-operation": one.id,
      onclick: (event) => { event.stopPropagation(); update({ selection: { kind: "operation", index: one.index } }); } },
      svg("title", null, `operation ${one.id}: ${textOf(view, one.request)} → ${textOf(view, one.answer)}`),
      svg("rect", { x: from, y, width, height: SUBLANE - 2, rx: 3, class: open ? "open" : "" }),
      one.outcome === 2 ? svg("rect", { x: from, y, width, height: SUBLANE - 2, rx: 3, fill: "url(#hatch)" }) : null,
      width > label.length * 5.6 ? words(from + 4, y + 9, label, "barname") : null);
  });
}

/** Whether an operation is a transaction of which no end is known: it lasts until the client begins another one. */
function isOpen(view, one) {
  const whole = transactionIs(view, one);
  return Boolean(whole) && one.answered === NEVER;
}

/** The transaction that an operation is the whole of; undefined for others. */
function transactionIs(view, one) {
  const found = view.transactions[view.transactionOfOperation.get(one.index)];
  return found && found.operation === one.index ? found : undefined;
}

function arrowShapes(view, geometry, marked) {
  const shapes = [];
  for (const one of view.messages) {
    if (one.sent > geometry.last || one.arrived < geometry.first || (!state.messages.has(one.kind) && !marked.messages.has(one.index))) continue;
    const shape = arrow(view, geometry, marked, one);
    if (shape) shapes.push(shape);
    if (shapes.length > MOST_ARROWS) break;
  }
  return shapes;
}

function arrow(view, geometry, marked, one) {
  const source = geometry.y[one.source], target = geometry.y[one.target];
  const lost = FATES[one.fate] === "lost";
  if (!source && !(target && !lost)) return null;
  if (!lost && (!source || !target || one.source === one.target)) return null;
  const from = geometry.x(one.sent), until = geometry.x(one.arrived);
  const y1 = source.middle, y2 = target ? target.middle : source.middle - 40;
  const future = one.sent > state.step ? " future" : "", now = one.arrived === state.step || one.sent === state.step ? " now" : "";
  const kinds = `arrow message-${MESSAGES[one.kind].kind} ${FATES[one.fate]}${one.sure ? "" : " guessed"}${future}${now}${marked.messages.has(one.index) ? " chosen" : ""}`;
  const attributes = { class: kinds, "data-message": one.index, onclick: (event) => { event.stopPropagation(); update({ selection: { kind: "message", index: one.index } }); } };
  const title = svg("title", null, `${MESSAGES[one.kind].word}, ${FATES[one.fate]}: ${textOf(view, one.text)}`);
  if (lost) {
    const direction = Math.sign(y2 - y1) || -1, stop = y1 + direction * Math.min(34, Math.abs(y2 - y1) * 0.6 || 34);
    return svg("g", attributes, title, svg("line", { x1: from, y1, x2: from + 12, y2: stop }), words(from + 12, stop + 4, "✕", "lostmark"));
  }
  const inset = target.height / 2 > 12 ? 9 : 6;
  const end = y2 + (y1 < y2 ? -inset : inset), begin = y1 + (y1 < y2 ? 4 : -4);
  const parts_ = [title, svg("line", { x1: from, y1: begin, x2: until, y2: end, class: "reach" }), svg("line", { x1: from, y1: begin, x2: until, y2: end, "marker-end": "url(#arrowhead)" })];
  if (FATES[one.fate] === "late" && until - from > 40) parts_.push(words((from + until) / 2, (begin + end) / 2 - 3, `late: ${duration(view.time[one.arrived] - view.time[Math.max(0, one.sent)])}`, "latemark"));
  if (FATES[one.fate] === "refused") parts_.push(words(until + 5, end + 3, "✕", "lostmark"));
  return svg("g", attributes, ...parts_);
}

const EVENT_SIGNS = {
  became_leader: "▲", became_follower: "△", truncated: "✂", log_recovered: "↻", broker_started: "⇑", controller_elected: "★", controller_resigned: "☆",
  session_expired: "⊘", isr_refused: "✕", control_request_refused: "✕", controller_write_refused: "✕", fetch_refused: "✕", follower_failed: "✕", log_directory_failed: "✕", implementation_error: "✕", liveness_failed: "✕",
};

// What a process wrote of itself, by the first word of its line.
const LINE_SIGNS = { started: "⇑", sent: "→", acknowledged: "✓", failed: "✕", assigned: "＋", received: "↓", processed: "●", committed: "◆", revoked: "－", lost: "－", stopped: "■", sink: "▪" };

function eventShapes(view, geometry, marked) {
  const shapes = [];
  for (let step = geometry.first; step <= geometry.last; step++) {
    const row = geometry.y[view.moments.lane[step]];
    if (!row || operationAt(view, step) >= 0) continue;
    const name = nameOf(view, step).name, sign = name === "application" ? LINE_SIGNS[textOf(view, view.moments.text[step]).split(" ")[0]] : EVENT_SIGNS[name];
    const convicts = view.convictingSteps.includes(step), chosen = marked.steps.has(step);
    const { who, what } = momentInWords(view, step);
    const kinds = `event ${name}${convicts ? " convicts" : ""}${chosen ? " chosen" : ""}${step > state.step ? " future" : ""}`;
    const at = geometry.x(step);
    shapes.push(svg("g", { class: kinds, "data-step": step, onclick: (event) => { event.stopPropagation(); goTo(step, { selection: { kind: "moment", step } }); } },
      svg("title", null, `${moment(view.time[step])}, ${who}: ${what}`),
      convicts ? svg("circle", { cx: at, cy: row.middle, r: 11, class: "convictring" }) : null,
      svg("circle", { cx: at, cy: row.middle, r: 8, class: "hit" }),
      sign ? words(at, row.middle + 4.5, sign, "sign") : svg("circle", { cx: at, cy: row.middle, r: 2.8, class: "dot" })));
  }
  return shapes;
}

function present(view, geometry) {
  const shapes = [];
  for (const step of view.convictingSteps) {
    if (step < geometry.first || step > geometry.last) continue;
    shapes.push(svg("line", { x1: geometry.x(step), x2: geometry.x(step), y1: TOP - 4, y2: geometry.height - 18, class: "convictline" }));
  }
  const at = geometry.x(state.step);
  shapes.push(svg("line", { x1: at, x2: at, y1: TOP - 8, y2: geometry.height - 16, class: "present" }), svg("path", { d: `M${at - 5},${geometry.height - 8} L${at},${geometry.height - 16} L${at + 5},${geometry.height - 8} Z`, class: "presenthead" }));
  return shapes;
}
