// The page comes to life. Owns: the order in which panels are made and drawn, keys, the address. Must not know any drawing.

import { decodeView } from "./data.js";
import { measureIn } from "./marks.js";
import { forgetWidths, html, patterns, replace } from "./dom.js";
import { addressOf, changesFromAddress, current, goTo, nextOf, onChange, state, turningPoints, update } from "./state.js";
import { drawBar, makeBar, momentInWords, play } from "./bar.js";
import { drawLogs, makeLogs } from "./logs.js";
import { drawCluster, makeCluster } from "./cluster.js";
import { drawSpacetime, makeSpacetime, zoom } from "./spacetime.js";
import { drawEvents, makeEvents } from "./events.js";
import { drawDetails, drawHead, makeDetails, switchTo } from "./details.js";
import { drawGroups, makeGroups } from "./groups.js";
import { drawTransactions, makeTransactions } from "./transactions.js";
import { drawSequential, makeSequential } from "./sequential.js";

const KEYS = [
  ["← →", "a moment back, a moment on"], ["Shift ← →", "ten moments"], ["[ ]", "the moment before, or after, that convicts"], [", .", "the turning point before or after: fault, election, cut, phase"],
  ["Home End", "beginning, end"], ["Space", "play, stop"], ["+ −", "fewer or more moments in the diagram"], ["p", "the next partition"], ["v", "the next run, where there are several"], ["Esc", "choose nothing"],
  ["Tab", "from panel to panel; in the logs ← → choose a record, in messages ↑ ↓ an operation, with Shift a message or a fault, in events ↑ ↓ an event"], ["?", "this list"],
];

const element = (id) => document.getElementById(id);

function help() {
  const open = element("help");
  if (open) { open.close(); open.remove(); return; }
  const dialog = html("dialog", { id: "help" }, html("h2", null, "Keys"), html("dl", null, KEYS.map(([keys, words_]) => html("div", null, html("dt", null, keys), html("dd", null, words_)))), html("form", { method: "dialog" }, html("button", null, "close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("select") || document.querySelector("dialog[open]")) return; // they have keys of their own
  const inSlider = event.target.id === "slider";
  const view = current(), far = event.shiftKey ? 10 : 1;
  const actions = {
    ArrowLeft: () => goTo(state.step - far), ArrowRight: () => goTo(state.step + far), Home: () => goTo(0), End: () => goTo(view.count - 1),
    "[": () => goTo(nextOf(view.convictingSteps, state.step, -1)), "]": () => goTo(nextOf(view.convictingSteps, state.step, 1)),
    ",": () => goTo(nextOf(turningPoints(view), state.step, -1)), ".": () => goTo(nextOf(turningPoints(view), state.step, 1)),
    " ": () => play(!state.playing), "+": () => zoom(1 / 1.5), "-": () => zoom(1.5), "?": help, Escape: () => update({ selection: null }),
    p: () => view.partitions.length && update({ partition: (state.partition + 1) % view.partitions.length, logs: { offset: null, follow: true } }),
    v: () => state.views.length > 1 && switchTo((state.active + 1) % state.views.length),
  };
  const action = actions[event.key];
  if (!action || (event.key === " " && event.target.closest("button, summary, [role=tab]"))) return;
  if (inSlider && !["[", "]", ",", ".", " ", "?", "Escape"].includes(event.key) && !event.shiftKey) return;
  event.preventDefault();
  action();
}

let spoken = 0;
function speak() {
  clearTimeout(spoken);
  if (state.playing) return;
  spoken = setTimeout(() => {
    if (!current().count) return;
    const { who, what } = momentInWords(current(), state.step);
    element("spoken").textContent = `${who}: ${what}`;
  }, 400);
}

let addressed = 0;
let written = "";
function keepAddress() {
  clearTimeout(addressed);
  addressed = setTimeout(() => {
    written = `#${addressOf()}`;
    if (location.hash !== written) history.replaceState(null, "", written);
  }, 150);
}

const FOCUSABLE = "button, select, input, summary, [tabindex]";

/** Where the focus is, as a panel and a place in it: drawing replaces the elements, and a keyboard must not lose its place. */
function focused() {
  const panel = document.activeElement && document.activeElement.closest("section[id], header[id], footer[id]");
  return panel ? { element: document.activeElement, panel, place: [...panel.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement) } : null;
}

function refocus(before) {
  if (!before || before.element.isConnected) return;
  const next = before.panel.querySelectorAll(FOCUSABLE)[before.place];
  if (next) next.focus({ preventScroll: true });
}

function drawAll(before) {
  const focus = focused();
  if (!before || before.active !== state.active || !element("head").hasChildNodes()) drawHead(element("head"));
  drawBar();
  drawLogs();
  drawSequential(element("sequential"));
  drawCluster(element("cluster"));
  drawDetails(element("details"));
  drawSpacetime();
  drawGroups(element("groups"));
  drawTransactions(element("transactions"));
  drawEvents();
  refocus(focus);
  keepAddress();
  speak();
}

function foot(view) {
  const replay = view.replay ? html("p", null, "Again: ", html("code", null, view.replay)) : null;
  const claims = view.trace.claims.length ? html("details", null, html("summary", null, "What this run may be held to"), html("ul", null, view.trace.claims.map((claim) => html("li", null, claim)))) : null;
  replace(element("foot"), replay, claims, html("p", { class: "dim small" }, `Fencepost ${view.trace.version} · digest ${view.trace.digest || "none"} · this file holds everything and asks for nothing. `, html("button", { type: "button", class: "small", onclick: help }, "keys (?)")));
}

function start() {
  state.views = JSON.parse(element("data").textContent).views.map(decodeView);
  measureIn(Math.max(...state.views.map((one) => one.span[1])), state.views.every((one) => one.timed));
  const view = state.views[0], finding = view.findings[0];
  if (finding && finding.partition >= 0) state.partition = finding.partition;
  state.step = view.opens.length ? view.opens[0] : 0;
  document.body.prepend(patterns());
  makeBar(element("bar"));
  makeLogs(element("logs"));
  makeSequential(element("sequential"));
  makeCluster(element("cluster"));
  makeDetails(element("details"));
  makeSpacetime(element("spacetime"));
  makeGroups(element("groups"));
  makeTransactions(element("transactions"));
  makeEvents(element("events"));
  element("logs").hidden = !view.partitions.length;
  foot(view);
  onChange(drawAll);
  Object.assign(state, changesFromAddress(location.hash));
  drawAll(null);
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => { forgetWidths(); drawAll(state); });
  addEventListener("hashchange", () => { if (location.hash !== written) update(changesFromAddress(location.hash)); });
  document.documentElement.dataset.ready = "true";
}

start();
