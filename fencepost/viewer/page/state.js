// The state of the page: view, moment, selection, filters. Owns: what the address keeps, and what is related to a selection.
// Must not know drawing.

import { runLength, runValue, operationAt, nameOf, stepAtTime, writerOf } from "./data.js";

export const state = {
  views: [],
  active: 0,
  step: 0,
  partition: 0,
  selection: null, // {kind: operation | moment | record | broker | message | fault, ...}
  kinds: null, // a Set of filter groups that are shown; null for all
  brokers: null, // a Set of brokers that are shown; null for all
  eventsOf: -1, // the partition that the list of events is about; -1 for all
  messages: new Set([0, 1, 2, 3]),
  even: true, // steps evenly spaced, or by time
  span: 0, // steps that the space-time diagram shows; 0 for as many as fit
  logs: { offset: null, follow: true },
  playing: false,
  speed: 6,
};

const listeners = [];

/** Have `draw(what)` called after each change. */
export function onChange(draw) {
  listeners.push(draw);
}

/** The view that is open. */
export function current() {
  return state.views[state.active];
}

/** Take over changes, and have everything drawn again. */
export function update(changes) {
  const before = { ...state };
  Object.assign(state, changes);
  state.step = Math.min(Math.max(0, state.step), Math.max(0, current().count - 1));
  for (const draw of listeners) draw(before);
}

/** Go to a step. */
export function goTo(step, changes) {
  update({ step, ...changes });
}

/** The moments that a person looks for: those that convict. */
export function nextOf(steps, step, direction) {
  const found = direction > 0 ? steps.find((one) => one > step) : [...steps].reverse().find((one) => one < step);
  return found === undefined ? step : found;
}

/** Steps of turning points: faults, elections, cuts, phases. */
export function turningPoints(view) {
  if (!view.turning) {
    view.turning = [];
    for (let step = 0; step < view.count; step++) if (nameOf(view, step).level === 1) view.turning.push(step);
  }
  return view.turning;
}

// ---- the address

/** The selection as a text, such as o35 or r0.39. */
export function selectionAsText(view, selection) {
  if (!selection) return "";
  switch (selection.kind) {
    case "operation": return `o${view.operations[selection.index].id}`;
    case "moment": return `e${view.window.first + selection.step}`;
    case "record": return `r${selection.partition}.${selection.offset}`;
    case "broker": return `b${selection.broker}`;
    case "message": return `m${selection.index}`;
    case "fault": return `f${selection.index}`;
    default: return "";
  }
}

/** And back; null for what this view does not have. */
export function selectionFromText(view, text) {
  const rest = text.slice(1), number = Number(rest);
  switch (text[0]) {
    case "o": return view.operationById.has(rest) ? { kind: "operation", index: view.operationById.get(rest) } : null;
    case "e": {
      const step = number - view.window.first;
      return Number.isInteger(step) && step >= 0 && step < view.count ? { kind: "moment", step } : null;
    }
    case "r": {
      const [partition, offset] = rest.split(".").map(Number);
      return Number.isInteger(partition) && Number.isInteger(offset) && view.partitions[partition] !== undefined ? { kind: "record", partition, offset } : null;
    }
    case "b": return Number.isInteger(number) ? { kind: "broker", broker: number } : null;
    case "m": return view.messages[number] ? { kind: "message", index: number } : null;
    case "f": return view.faults[number] ? { kind: "fault", index: number } : null;
    default: return null;
  }
}

/** What the address says after #. Steps count from the beginning of the trace, so that a page with another window understands them. */
export function addressOf() {
  const view = current();
  const parts = [`s=${view.window.first + state.step}`, `p=${state.partition}`];
  if (state.active) parts.push(`v=${state.active}`);
  const selected = selectionAsText(view, state.selection);
  if (selected) parts.push(`sel=${selected}`);
  return parts.join("&");
}

/** The changes that an address asks for; {} for one that says nothing. */
export function changesFromAddress(hash) {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const changes = {};
  const active = Number(asked.get("v") || 0);
  if (state.views[active]) changes.active = active;
  const view = state.views[changes.active || 0];
  const step = Number(asked.get("s"));
  if (asked.has("s") && Number.isInteger(step)) changes.step = Math.min(Math.max(0, step - view.window.first), Math.max(0, view.count - 1));
  const partition = Number(asked.get("p"));
  if (asked.has("p") && view.partitions[partition] !== undefined) changes.partition = partition;
  if (asked.has("sel")) changes.selection = selectionFromText(view, asked.get("sel"));
  return changes;
}

// ---- what belongs together

/** Whether a block or run of a partition holds any of the values of an operation. */
function writtenBy(view, partition, values, index) {
  for (let i = 0; i < runLength(values); i++) if (writerOf(view, partition, runValue(values, i)) === index) return true;
  return false;
}

/** Everything that belongs to the selection: {operations, steps, messages, offsets: [partition, first, end], brokers}. */
export function related() {
  const view = current(), selection = state.selection;
  const found = { operations: new Set(), steps: new Set(), messages: new Set(), offsets: [], brokers: new Set() };
  if (!selection) return found;
  if (selection.kind === "operation") relatedToOperation(view, selection.index, found);
  else if (selection.kind === "moment") {
    found.steps.add(selection.step);
    const index = operationAt(view, selection.step);
    if (index >= 0) relatedToOperation(view, index, found);
  } else if (selection.kind === "record") relatedToRecord(view, selection, found);
  else if (selection.kind === "broker") found.brokers.add(selection.broker);
  else if (selection.kind === "message") {
    const message = view.messages[selection.index];
    found.messages.add(selection.index);
    if (message.arrived >= 0 && message.arrived < view.count) found.steps.add(message.arrived);
    if (message.operation >= 0) found.operations.add(message.operation);
  } else if (selection.kind === "fault") {
    const fault = view.faults[selection.index];
    for (const node of fault.nodes) found.brokers.add(node);
    for (const step of [fault.began, fault.ended]) if (step >= 0 && step < view.count) found.steps.add(step);
  }
  return found;
}

function relatedToOperation(view, index, found) {
  const one = view.operations[index];
  found.operations.add(index);
  for (const step of [one.invoked, one.answered]) if (step >= 0 && step < view.count) found.steps.add(step);
  for (const message of view.messages) if (message.operation === index) found.messages.add(message.index);
  for (const read of one.reads) found.offsets.push(read);
  const whole = view.transactions[view.transactionOfOperation.get(index)];
  if (whole && whole.operation === index) for (const part of whole.parts) relatedToOperation(view, part, found);
  if (!runLength(one.writes)) return;
  for (const replica of view.replicas) {
    for (const block of replica.blocks) {
      if (writtenBy(view, replica.partition, block.values, index)) found.offsets.push([replica.partition, block.base, block.base + runLength(block.values)]);
    }
  }
}

function relatedToRecord(view, selection, found) {
  const { partition, offset } = selection;
  found.offsets.push([partition, offset, offset + 1]);
  for (const replica of view.replicas) {
    if (replica.partition !== partition) continue;
    for (const block of replica.blocks) {
      if (offset < block.base || offset >= block.base + runLength(block.values)) continue;
      const writer = writerOf(view, partition, runValue(block.values, offset - block.base));
      if (writer !== undefined) found.operations.add(writer);
      for (const step of [block.born, block.died]) if (step >= 0 && step < view.count) found.steps.add(step);
    }
  }
  for (const one of view.operations) {
    if (one.reads.some(([number, first, end]) => number === partition && first <= offset && offset < end)) found.operations.add(one.index);
  }
}

/** Times of the two ends of a view and of what convicts between them, ascending. */
function turnsOf(view) {
  return [view.time[0], ...view.convictingSteps.map((step) => view.time[step]), view.time[view.count - 1]];
}

/** Whether two views show one finding of two plans, such as a whole one and a shrunk one: then their convicting moments belong together. */
export function matched(one, other) {
  const [a, b] = [one.findings[0], other.findings[0]];
  return Boolean(one !== other && a && b && a.anomaly === b.anomaly && one.convictingSteps.length === other.convictingSteps.length);
}

/** The step of another view at the moment of the open one: at the same time, or as far between two convicting moments that match. */
export function stepIn(view) {
  const open = current();
  if (view === open) return state.step;
  const time = open.time[state.step];
  if (!matched(open, view)) return stepAtTime(view, time);
  const [from, to] = [turnsOf(open), turnsOf(view)];
  let turn = 0;
  while (turn < from.length - 2 && time >= from[turn + 1]) turn += 1;
  const share = from[turn + 1] > from[turn] ? (time - from[turn]) / (from[turn + 1] - from[turn]) : 0;
  return stepAtTime(view, to[turn] + share * (to[turn + 1] - to[turn]));
}
