// The chosen thing in full, and the finding. Owns: their words. Must not know where the thing is drawn.

import { NEVER, contentOf, factAt, fateAt, operationAt, replicasOf, runLength, runValue, textOf, transactionOf, valueAt, writerOf } from "./data.js";
import { FATES, GONE, MESSAGES, OUTCOMES, duration, roleOf, moment } from "./marks.js";
import { html, replace } from "./dom.js";
import { current, goTo, state, stepIn, update } from "./state.js";
import { momentInWords } from "./bar.js";

const FEW_STRIKES = 6, MOST_STRIKES = 60; // so many stand open; so many are listed, the others are in the diagram

/** Draw the head of the page: what was found. */
export function drawHead(root) {
  const view = current(), finding = view.findings[0], trace = view.trace;
  const names = state.views.length > 1 ? html("div", { class: "tabs", role: "tablist", "aria-label": "Run" }, state.views.map((one, index) => html("button", {
    type: "button", role: "tab", "aria-selected": String(index === state.active), onclick: () => switchTo(index),
  }, one.name || `run ${index + 1}`))) : null;
  const facts = [trace.target, trace.profile && `profile ${trace.profile}`, `trace ${trace.id}`, `${trace.operations} operations`, `${trace.events} events`, !view.timed && "in their order: the axis has places, not times"].filter(Boolean).join(" · ");
  replace(root, names,
    finding ? html("h1", { class: "found" }, finding.title) : view.failure ? html("h1", { class: "found" }, "The test failed") : html("h1", null, view.verdicts.length ? "Nothing found" : "A run"),
    html("p", { class: "dim small" }, facts),
    view.failure && !finding ? html("p", { class: "definition" }, `${view.failure}. No judge found anything: the page opens at the last thing that a client heard.`) : null,
    finding ? html("p", { class: "definition" }, `${finding.definition} (breaks ${finding.breaks})`) : null,
    finding ? html("dl", { class: "finding" }, html("dt", null, "expected"), html("dd", null, finding.expected), html("dt", null, "seen"), html("dd", null, finding.seen)) : null,
    finding ? proof(view, finding) : null,
    strikes(view),
    others(view), undecided(view), leftOut(view));
  document.title = `${finding ? finding.title : "run"} · trace ${trace.id} · Fencepost`;
}

/** Open another run at the same moment. */
export function switchTo(index) {
  const name = current().partitions[state.partition];
  const view = state.views[index];
  const partition = Math.max(0, view.partitions.indexOf(name));
  update({ active: index, step: stepIn(view), partition, selection: null, kinds: null, brokers: null, eventsOf: -1 });
}

function proof(view, finding) {
  const steps = finding.steps.map((step) => {
    const { who, what } = momentInWords(view, step);
    return html("li", null, html("button", { type: "button", class: "jump", onclick: () => goTo(step, { selection: { kind: "moment", step }, ...(finding.partition >= 0 ? { partition: finding.partition } : {}) }) },
      html("span", { class: "convictmark" }, "◆ "), html("span", { class: "when" }, `${moment(view.time[step])} `), html("b", null, `${who}: `), what));
  });
  return steps.length ? html("ol", { class: "proof", "aria-label": "What convicts" }, steps) : null;
}

/** What was broken on purpose, in the head: a person looks there for the cause. */
function strikes(view) {
  if (!(view.findings.length || view.failure) || !view.faults.length) return null;
  const more = view.faults.length - MOST_STRIKES;
  return html("details", { class: "strikes", open: view.faults.length <= FEW_STRIKES }, html("summary", null, `What was broken (${view.faults.length})`), html("ol", { class: "proof", "aria-label": "What was broken" }, view.faults.slice(0, MOST_STRIKES).map((fault, index) => {
    const step = Math.min(Math.max(0, fault.began), view.count - 1);
    return html("li", null, html("button", { type: "button", class: "jump", onclick: () => goTo(step, { selection: { kind: "fault", index } }) }, html("span", { class: "when" }, `⚡ ${moment(view.time[step])} `), textOf(view, fault.text)));
  }), more > 0 ? html("li", { class: "dim" }, `and ${more} more`) : null));
}

function others(view) {
  const rest = view.findings.slice(1);
  if (!rest.length) return null;
  return html("details", { class: "others" }, html("summary", null, `${rest.length + view.more_findings} more of this run`), html("ul", null, rest.map((finding) => html("li", null,
    html("b", null, finding.title), ` (${finding.check}): ${finding.seen} `,
    finding.steps.slice(0, 4).map((step) => html("button", { type: "button", class: "small", onclick: () => goTo(step, { selection: { kind: "moment", step }, ...(finding.partition >= 0 ? { partition: finding.partition } : {}) }) }, `${moment(view.time[step])}`))))));
}

function undecided(view) {
  const weak = view.verdicts.filter((one) => one.decision !== "ok" && one.decision !== "illegal");
  return weak.length ? html("p", { class: "dim small" }, weak.map((one) => `${one.check}: ${one.decision.replaceAll("_", " ")}, ${one.reason}`).join(" · ")) : null;
}

function leftOut(view) {
  if (!view.left_out.length) return null;
  return html("details", { class: "note", id: "left-out", open: view.left_out.length < FEW_STRIKES }, html("summary", null, "What this page leaves out"), html("ul", null, view.left_out.map((one) => html("li", null, one))));
}

/** Make the panel of the chosen thing once. */
export function makeDetails(root) {
  replace(root, html("div", { class: "panelhead" }, html("h2", { id: "details-heading" }, "Chosen"), html("button", { type: "button", id: "unselect", onclick: () => update({ selection: null }) }, "nothing")), html("div", { class: "body" }));
}

/** Draw it. */
export function drawDetails(root) {
  const view = current(), selection = state.selection, body = root.querySelector(".body");
  root.querySelector("#unselect").hidden = !selection;
  root.querySelector("h2").textContent = selection ? "Chosen" : "Now";
  if (!selection) {
    replace(body, view.count ? tellMoment(view, { step: state.step }) : null, html("p", { class: "dim small" }, "Choose a record, an operation, a message, a broker, a fault or an event: it is marked everywhere. Keys: ← → moments, [ ] what convicts, , . turning points, space plays, + − zoom, ? all keys."));
    return;
  }
  const tell = { operation: tellOperation, moment: tellMoment, record: tellRecord, broker: tellBroker, message: tellMessage, fault: tellFault }[selection.kind];
  replace(body, tell(view, selection));
}

function list(entries) {
  return html("dl", { class: "facts" }, entries.filter((entry) => entry && entry[1] !== null && entry[1] !== undefined && entry[1] !== "").map(([name, value]) => html("div", null, html("dt", null, name), html("dd", null, value instanceof Node || Array.isArray(value) ? value : String(value)))));
}

function stepButton(view, step, label) {
  if (step === NEVER) return "never";
  if (step < 0) return "before this page begins";
  if (step >= view.count) return "after this page ends";
  return html("button", { type: "button", class: "small", onclick: () => goTo(step) }, label || `${moment(view.time[step])}`);
}

function values(view, run) {
  const found = [];
  for (let i = 0; i < Math.min(runLength(run), 40); i++) found.push(contentOf(view, runValue(run, i)));
  return found.join(", ") + (runLength(run) > 40 ? ` and ${runLength(run) - 40} more` : "");
}

function operationButton(view, index) {
  return html("button", { type: "button", class: "small", onclick: () => update({ selection: { kind: "operation", index } }) }, `operation ${view.operations[index].id}`);
}

function tellOperation(view, { index }) {
  const one = view.operations[index], extras = one.extras;
  return [html("h3", null, `Operation ${one.id}${view.convicting.has(index) ? " ◆ convicts" : ""}`), list([
    ["client", view.lanes[one.lane].label], ["asked", textOf(view, one.request)], ["answer", textOf(view, one.answer)], ["outcome", one.function === "txn" ? ["committed", "aborted", "unknown"][one.outcome] : OUTCOMES[one.outcome]],
    ["invoked", stepButton(view, one.invoked, `${moment(one.invoke)}`)],
    ["answered", one.complete < 0 ? "never" : [stepButton(view, one.answered, `${moment(one.complete)}`), ` after ${duration(one.complete - one.invoke)}`]],
    ["by", one.node >= 0 ? `broker ${one.node}` : ""], ["key", extras.key], ["records", values(view, one.writes)],
    ["read", one.reads.map(([partition, first, end]) => `${view.partitions[partition]} ${first}${end - 1 > first ? ` to ${end - 1}` : ""}`).slice(0, 12).join(", ")],
    ["producer", extras.producer ? `id ${extras.producer[0]}, epoch ${extras.producer[1]}, sequence ${extras.producer[2]}` : ""],
    ...transactionOfOperation(view, index),
    ["attempts", extras.attempts], ["acks", extras.acks], ["group", extras.group ? `${extras.group}, generation ${extras.generation ?? "none"}` : ""],
  ])];
}

/** The transaction that an operation is, or is part of. */
function transactionOfOperation(view, index) {
  const one = view.transactions[view.transactionOfOperation.get(index)];
  if (!one) return [];
  const ends = one.ended === NEVER ? "no end of it is known" : one.fate === 2 ? "aborts" : "commits";
  if (one.operation === index) return [["transaction", `${fateAt(one, state.step) || "not begun"}; ${ends}`], ["parts", one.parts.slice(0, 20).map((part) => operationButton(view, part))]];
  return [["transaction", [one.operation >= 0 ? operationButton(view, one.operation) : String(one.id), ` ${fateAt(one, state.step) || "not begun"}; ${ends}`]]];
}

function tellMoment(view, { step }) {
  const index = operationAt(view, step);
  if (index >= 0) return tellOperation(view, { index });
  const { who, what } = momentInWords(view, step);
  return [html("h3", null, `Event ${view.moments.ref[step]}${view.convictingSteps.includes(step) ? " ◆ convicts" : ""}`), list([["when", stepButton(view, step)], ["who", who], ["what", what]])];
}

function tellRecord(view, { partition, offset }) {
  const rows = replicasOf(view, partition).flatMap((replica) => replica.blocks.filter((block) => block.base <= offset && offset < block.base + runLength(block.values)).map((block) => {
    const value = block.epoch < 0 ? "unknown" : runValue(block.values, offset - block.base), writer = writerOf(view, partition, value);
    const here = block.born <= state.step && (block.died < 0 || state.step < block.died);
    return html("tr", { class: here ? "here" : "dim" }, html("td", null, replica.broker), html("td", null, contentOf(view, value)), html("td", null, block.epoch < 0 ? "?" : block.epoch), html("td", null, stepButton(view, block.born)),
      html("td", null, block.died < 0 ? "stays" : [`${GONE[block.gone]} `, stepButton(view, block.died)]), html("td", null, writer === undefined ? "" : operationButton(view, writer)));
  }));
  const one = view.clients.find((entry) => entry.partition === partition);
  const seen = one ? one.known.filter((row) => row.base <= offset && offset < row.base + runLength(row.values)).slice(0, 12).map((row) => html("li", null,
    `${view.hows[row.how]} as ${contentOf(view, runValue(row.values, offset - row.base))} `, row.operation >= 0 ? operationButton(view, row.operation) : "", row.step >= 0 ? stepButton(view, row.step) : "")) : [];
  const owners = new Set(replicasOf(view, partition).flatMap((replica) => replica.blocks).concat(one ? one.known : []).filter((row) => row.base <= offset && offset < row.base + runLength(row.values))
    .map((row) => transactionOf(view, partition, runValue(row.values, offset - row.base))).filter(Boolean));
  return [html("h3", null, `${view.partitions[partition]}, offset ${offset}`),
    [...owners].map((owner) => html("p", null, `Of transaction ${owner.id} `, owner.operation >= 0 ? operationButton(view, owner.operation) : "", `: ${fateAt(owner, state.step) || "not begun"} at this moment.`)),
    rows.length ? html("div", { class: "scroll" }, html("table", null, html("thead", null, html("tr", null, ["broker", "value", "epoch", "since", "until", "sent by"].map((name) => html("th", { scope: "col" }, name)))), html("tbody", null, rows))) : html("p", { class: "dim" }, "No replica ever held a record there."),
    seen.length ? html("ul", { class: "plainlist" }, seen) : null];
}

function tellBroker(view, { broker }) {
  const step = state.step;
  return [html("h3", null, `Broker ${broker}`), list(view.partitions.slice(0, 30).map((name, number) => {
    const letter = factAt(view, `p${number}b${broker}`, "letter", step), replica = replicasOf(view, number).find((one) => one.broker === broker);
    if (!replica) return null;
    return [name, html("button", { type: "button", class: "small", onclick: () => update({ partition: number }) }, `${roleOf(letter).word}, epoch ${factAt(view, `p${number}b${broker}`, "epoch", step) ?? "none"}, end ${valueAt(replica.facts.log_end, step) ?? "?"}, HW ${valueAt(replica.facts.high_watermark, step) ?? "?"}`)];
  }))];
}

function tellMessage(view, { index }) {
  const one = view.messages[index], label = (lane) => (lane >= 0 ? view.lanes[lane].label : "nobody known");
  return [html("h3", null, MESSAGES[one.kind].word), list([
    ["from", label(one.source)], ["to", label(one.target)], ["fate", FATES[one.fate]], ["what", textOf(view, one.text)],
    ["left", one.sure || one.fate === 1 ? stepButton(view, one.sent) : one.sent === one.arrived ? "not recorded" : ["not before ", stepButton(view, one.sent)]],
    ["arrived", one.fate === 1 ? "never" : stepButton(view, one.arrived)], ["of", one.operation >= 0 ? operationButton(view, one.operation) : ""],
  ])];
}

function tellFault(view, { index }) {
  const fault = view.faults[index];
  return [html("h3", null, `Fault: ${fault.kind.replaceAll("_", " ")}`), list([
    ["what", textOf(view, fault.text)], ["brokers", fault.nodes.join(", ")], ["began", stepButton(view, fault.began)], ["ended", stepButton(view, fault.ended)],
    ["lasted", fault.until >= 0 ? duration(fault.until - fault.from) : ""],
  ])];
}
