// The events as text, filtered. Owns: the list, of which only what is seen is made. Must not know what filters mean elsewhere.

import { brokersOf, nameOf, operationAt, textOf } from "./data.js";
import { KINDS, OTHER_KIND, kindOf, moment } from "./marks.js";
import { html, replace, widthOf } from "./dom.js";
import { current, goTo, related, state, update } from "./state.js";
import { whoAt } from "./bar.js";

const ROW = 24, HEIGHT = 400, SPARE = 6;
let parts = null;
let listed = { key: "", steps: [] };
let scrolledFor = -1;
let top = 0; // of the list, kept because asking makes the browser lay out the whole page
let filteredFor = "";

/** Make the panel once. */
export function makeEvents(root) {
  parts = {
    filters: html("div", { class: "filters" }),
    count: html("span", { class: "dim" }),
    box: html("div", { class: "list", tabindex: 0, role: "listbox", "aria-label": "Events. Arrow up and down go to the event before or after." }),
    rows: html("div", { class: "rows" }),
    root,
  };
  parts.box.append(parts.rows);
  replace(root, html("div", { class: "panelhead" }, html("h2", { id: "events-heading" }, "Events"), parts.count), parts.filters, parts.box);
  parts.box.addEventListener("scroll", () => { if (Math.abs(parts.box.scrollTop - top) < 1) return; top = parts.box.scrollTop; fillRows(current()); });
  parts.box.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -15, PageDown: 15 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const place = nearest(listed.steps, state.step);
    const step = listed.steps[Math.min(listed.steps.length - 1, Math.max(0, place + by))];
    if (step !== undefined) goTo(step, { selection: { kind: "moment", step } });
  });
}

function nearest(steps, step) {
  let low = 0, high = steps.length;
  while (low < high) { const middle = (low + high) >> 1; if (steps[middle] <= step) low = middle + 1; else high = middle; }
  return low - 1;
}

/** The steps that pass the filters. */
export function filteredSteps(view) {
  const key = `${state.active}|${state.kinds ? [...state.kinds].sort() : "*"}|${state.brokers ? [...state.brokers].sort() : "*"}|${state.eventsOf}`;
  if (listed.key === key) return listed.steps;
  const kinds = view.names.map((name) => kindOf(name.name));
  const steps = [];
  for (let step = 0; step < view.count; step++) {
    if (state.kinds && !state.kinds.has(kinds[view.moments.name[step]])) continue;
    const node = view.moments.node[step];
    if (state.brokers && node >= 0 && !state.brokers.has(node)) continue;
    const partition = view.moments.partition[step];
    if (state.eventsOf >= 0 && partition >= 0 && partition !== state.eventsOf) continue;
    steps.push(step);
  }
  listed = { key, steps };
  return steps;
}

function toggled(chosen, all, one) {
  const next = new Set(chosen || all);
  if (!next.delete(one)) next.add(one);
  return next.size === all.length ? null : next;
}

function drawFilters(view) {
  const there = new Set(view.names.filter((_, number) => view.usedNames.has(number)).map((name) => kindOf(name.name)));
  const kinds = [...KINDS.map(([name]) => name), OTHER_KIND].filter((name) => there.has(name));
  const brokers = brokersOf(view);
  const chips = (label, all, chosen, name, apply) => html("div", { class: "chips", role: "group", "aria-label": label }, all.map((one) => html("button", {
    type: "button", class: "chip", "aria-pressed": String(!chosen || chosen.has(one)), onclick: () => apply(toggled(chosen, all, one)),
  }, name(one))));
  replace(parts.filters,
    chips("Kinds of events", kinds, state.kinds, (one) => one, (next) => update({ kinds: next })),
    brokers.length ? chips("Brokers", brokers, state.brokers, (one) => `broker ${one}`, (next) => update({ brokers: next })) : null,
    view.partitions.length > 1 ? html("select", { "aria-label": "Partition of the events", onchange: (event) => update({ eventsOf: Number(event.target.value) }) },
      html("option", { value: -1, selected: state.eventsOf < 0 }, "all partitions"), view.partitions.map((name, index) => html("option", { value: index, selected: state.eventsOf === index }, name))) : null,
    html("button", { type: "button", class: "chip", onclick: () => update({ kinds: null, brokers: null, eventsOf: -1 }) }, "show all"));
}

/** Draw the list around the moment. */
export function drawEvents() {
  const view = current();
  if (!view.usedNames) view.usedNames = new Set(view.moments.name);
  const steps = filteredSteps(view);
  if (filteredFor !== listed.key) {
    filteredFor = listed.key;
    drawFilters(view);
    parts.count.textContent = steps.length === view.count ? `${steps.length}` : `${steps.length} of ${view.count}`;
    parts.rows.style.height = `${steps.length * ROW}px`;
    parts.box.style.height = `${Math.min(HEIGHT, Math.max(steps.length, 3) * ROW + 2)}px`;
  }
  const place = Math.max(0, nearest(steps, state.step));
  let moved = false;
  if (scrolledFor !== state.step) {
    const at = place * ROW;
    if (at < top + ROW * 2 || at > top + HEIGHT - ROW * 4) {
      top = Math.max(0, Math.min(at - HEIGHT / 2, steps.length * ROW - HEIGHT));
      moved = true;
    }
    scrolledFor = state.step;
  }
  fillRows(view);
  if (moved) parts.box.scrollTop = top; // last, so that the page is laid out once
}

function fillRows(view) {
  const steps = listed.steps;
  const first = Math.max(0, Math.floor(top / ROW) - SPARE), last = Math.min(steps.length, Math.ceil((top + HEIGHT) / ROW) + SPARE);
  const marked = related(), present = nearest(steps, state.step);
  const rows = [];
  for (let i = first; i < last; i++) rows.push(row(view, steps[i], i, i === present, marked));
  replace(parts.rows, rows);
}

function row(view, step, place, present, marked) {
  const name = nameOf(view, step), operation = operationAt(view, step);
  const convicts = view.convictingSteps.includes(step) || (operation >= 0 && view.convicting.has(operation));
  const chosen = marked.steps.has(step) || (operation >= 0 && marked.operations.has(operation));
  const kinds = `row level${name.level}${convicts ? " convicts" : ""}${chosen ? " chosen" : ""}${present ? " present" : ""}${step > state.step ? " future" : ""} name-${name.name}`;
  const partition = view.moments.partition[step];
  const text = textOf(view, view.moments.text[step]);
  const what = operation >= 0 ? `op ${view.operations[operation].id}: ${name.name === "answer" ? "→ " : ""}${text}` : text;
  const element = html("div", { class: kinds, role: "option", "aria-selected": String(present), "data-step": step, title: what, onclick: () => goTo(step, { selection: operation >= 0 ? { kind: "operation", index: operation } : { kind: "moment", step } }) },
    html("span", { class: "mark" }, convicts ? "◆" : ""), html("span", { class: "time" }, moment(view.time[step], widthOf(parts.box, 280) < 560 ? 3 : undefined)),
    html("span", { class: "who" }, whoAt(view, step)), html("span", { class: "where" }, partition >= 0 ? view.partitions[partition] : ""), html("span", { class: "text" }, what));
  element.style.top = `${place * ROW}px`;
  return element;
}
