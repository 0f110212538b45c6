// The replicas' logs of a partition at a moment: rows of blocks by offset. Owns: the geometry of logs. Must not know time.

import { blocksAt, clientFactAt, contentOf, factAt, fateAt, ghostsAt, knownAt, replicasOf, runLength, runValue, transactionOf, valueAt, writerOf } from "./data.js";
import { GONE, epochClass, epochPattern, ids, moment, roleOf } from "./marks.js";
import { button, html, replace, svg, widthOf, words } from "./dom.js";
import { current, matched, related, state, stepIn, update } from "./state.js";

const RECENT = 60; // steps for which records that are gone are drawn strongly
const ROW = 62, ROW_WITH_GONE = 82, BLOCK = 26, TOP = 28, CLIENT_ROW = 34, STABLE = 18;
let parts = null;
let edge = 0; // the step drawn last, so that only a step forward lets blocks fall

/** Make the panel once. */
export function makeLogs(root) {
  parts = { tabs: html("div", { class: "tabs", role: "tablist", "aria-label": "Partition" }), pictures: html("div", { class: "pictures", tabindex: 0, role: "group" }), tools: html("div", { class: "tools" }), root };
  replace(root, html("div", { class: "panelhead" }, html("h2", { id: "logs-heading", tabindex: -1 }, "Logs"), parts.tabs, parts.tools), parts.pictures, legend());
  replace(parts.tools,
    button("◂", "Lower offsets", () => shift(-5)),
    button("39", "To the disputed offset", toDisputed, { id: "disputed", class: "bad" }),
    button("end", "Follow the end of the logs", () => update({ logs: { offset: null, follow: true } }), { id: "follow" }),
    button("▸", "Higher offsets", () => shift(5)));
  parts.pictures.addEventListener("keydown", (event) => moveByKey(event));
}

function legend() {
  const sample = (kind, pattern, mark) => svg("svg", { width: 26, height: 14, class: "sample" }, svg("rect", { x: 1, y: 1, width: 24, height: 12, rx: 2, class: `block ${kind}` }), transactionMark(mark, 1, 1, 24, 12), pattern ? svg("rect", { x: 1, y: 1, width: 24, height: 12, rx: 2, fill: `url(#${pattern})` }) : null);
  return html("details", { class: "legend" }, html("summary", null, "What the blocks mean"),
    html("ul", null,
      html("li", null, sample("epoch-0"), " a record; colour and pattern say its leader epoch, the number is its value"),
      html("li", null, sample("epoch-0 uncommitted"), " at or above the replica's high watermark (HW)"),
      html("li", null, sample("epoch-0 cache"), " in the page cache only. A trace does not record what is synced; the broker's next start showed it"),
      html("li", null, sample("epoch-0 ghost"), " gone: cut, lost at a restart or overwritten; it stays visible for some moments"),
      html("li", null, sample("epoch-unknown"), " a record that no event named: a start found it"),
      html("li", null, sample("epoch-0 twinblock"), " the value of the disputed offset at another offset"),
      html("li", null, sample("epoch-0 uncommitted", "", "txn-open"), " of a transaction that is open at this moment: … in its corner"),
      html("li", null, sample("epoch-0", "", "txn-aborted"), " of an aborted transaction: struck through"),
      html("li", null, "end: log end offset. start: log start offset. clean: compacted up to there; which records went is not recorded. LSO: the last stable offset that a client was shown")));
}

function disputed(view, partition) {
  const finding = view.findings[0];
  return finding && finding.partition === partition && finding.offset >= 0 ? finding.offset : null;
}

/** The offsets of a partition that the finding is about. */
function concerned(view, partition) {
  const finding = view.findings[0];
  if (!finding) return [];
  const offsets = new Set(finding.records.filter(([number]) => number === partition).map(([, offset]) => offset));
  if (finding.partition === partition && finding.offset >= 0) offsets.add(finding.offset);
  return [...offsets];
}

function toDisputed() {
  const finding = current().findings[0];
  if (finding && finding.offset >= 0) update({ partition: finding.partition, logs: { offset: finding.offset, follow: false } });
}

function shift(by) {
  update({ logs: { offset: Math.max(0, (parts.middle || 0) + by), follow: false } });
}

function moveByKey(event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.shiftKey || event.altKey || event.ctrlKey) return;
  event.preventDefault();
  event.stopPropagation();
  const chosen = state.selection && state.selection.kind === "record" && state.selection.partition === state.partition ? state.selection.offset + by : parts.middle || 0;
  const offset = Math.max(0, chosen);
  update({ selection: { kind: "record", partition: state.partition, offset }, logs: { offset, follow: false } });
}

/** The ends of a partition's logs at a step: the highest log end of any replica, or what clients know. */
function endOf(view, partition, step) {
  let end = 0;
  for (const replica of replicasOf(view, partition)) end = Math.max(end, valueAt(replica.facts.log_end, step) || 0);
  for (const row of knownAt(view, partition, step)) end = Math.max(end, row.base + runLength(row.values));
  return end;
}

/** The width of a record: texts need more room than numbers. */
function cellOf(view, narrow) {
  const texts = Object.keys(view.contents).length > 0;
  return narrow ? (texts ? 92 : 34) : texts ? 132 : 48;
}

/** The first offset that is drawn: around the disputed one as soon as the logs come near it, if that is followed; otherwise the end. */
function firstOf(view, partition, step, shape) {
  const end = endOf(view, partition, step), known = disputed(view, partition), wanted = known === null ? Math.max(-1, ...concerned(view, partition)) : known;
  const near = state.logs.follow && wanted >= 0 && end >= wanted - shape.count * 0.4;
  return Math.max(0, near ? wanted - Math.floor(shape.count / 2) : end - shape.count + 2);
}

/** Draw all views' logs at the moment. */
export function drawLogs() {
  const view = current();
  drawTabs(view);
  const button_ = parts.tools.querySelector("#disputed");
  const finding = view.findings[0];
  button_.hidden = !finding || finding.offset < 0;
  if (!button_.hidden) button_.textContent = `◆ ${finding.offset}`;
  const width = widthOf(parts.pictures, 280);
  const narrow = width < 560;
  const shape = { width, label: narrow ? 88 : 150, cell: cellOf(view, narrow) };
  shape.count = Math.max(4, Math.floor((width - shape.label - 18) / shape.cell));
  shape.first = state.logs.offset !== null ? Math.max(0, state.logs.offset - Math.floor(shape.count / 2)) : firstOf(view, state.partition, state.step, shape);
  parts.middle = shape.first + Math.floor(shape.count / 2);
  parts.tools.querySelector("#follow").setAttribute("aria-pressed", String(state.logs.offset === null));
  const name = view.partitions[state.partition];
  const pictures = state.views.map((one, index) => {
    const partition = one === view ? state.partition : one.partitions.indexOf(name);
    if (partition < 0) return null;
    const step = stepIn(one);
    return html("figure", { class: one === view ? "view active" : "view", "data-view": index },
      state.views.length > 1 ? html("figcaption", null, html("b", null, one.name || `run ${index + 1}`), one === view ? " (open)" : matched(view, one) ? " at the matching moment" : " at the same time") : null,
      picture(one, partition, step, matched(view, one) ? { ...shape, first: firstOf(one, partition, step, shape) } : shape, one === view));
  });
  replace(parts.pictures, pictures.length ? pictures : html("p", null, "No partition is named in this trace."));
  const heard = parts.pictures.querySelector("figure.active svg");
  parts.pictures.setAttribute("aria-label", `${heard ? heard.getAttribute("aria-label") : "Logs."} Arrow left and right choose a record.`);
  edge = state.step;
}

let tabsFor = "";

function drawTabs(view) {
  const key = `${state.active} ${state.partition}`;
  if (key === tabsFor) return;
  tabsFor = key;
  const many = view.partitions.length > 8;
  if (many) {
    replace(parts.tabs, html("select", { "aria-label": "Partition", onchange: (event) => update({ partition: Number(event.target.value), logs: { offset: null, follow: true } }) },
      view.partitions.map((name, index) => html("option", { value: index, selected: index === state.partition }, name))));
    return;
  }
  replace(parts.tabs, view.partitions.map((name, index) => html("button", {
    type: "button", role: "tab", "aria-selected": String(index === state.partition),
    onclick: () => update({ partition: index, logs: { offset: null, follow: true } }),
  }, name, concerned(view, index).length || (view.findings[0] && view.findings[0].partition === index) ? html("span", { class: "convictmark", title: "the finding is about it" }, " ◆") : null)));
}

/** One partition of one view. */
function picture(view, partition, step, shape, active) {
  const replicas = replicasOf(view, partition);
  const known = knownAt(view, partition, step);
  const clientRows = view.hows.map((name, how) => [name, known.filter((row) => row.how === how)]).filter(([, rows]) => rows.length);
  // replicas that ever lose records need room for those that fall; rows must not jump from moment to moment
  const row = replicas.some((replica) => replica.blocks.some((block) => block.died >= 0 && block.gone !== 4)) ? ROW_WITH_GONE : ROW;
  const stable = clientFactAt(view, partition, "last_stable_offset", step), known_ = view.clients.find((one) => one.partition === partition);
  const height = TOP + replicas.length * row + clientRows.length * CLIENT_ROW + 8 + (known_ && known_.facts.last_stable_offset ? STABLE : 0);
  const marked = active ? related() : { offsets: [], brokers: new Set() };
  const wanted = matched(current(), view) ? disputed(view, partition) : disputed(current(), state.partition);
  shape.twins = wanted === null ? new Map() : valuesAt(view, replicas, known, wanted);
  const framed = matched(current(), view) || view === current() ? new Set([...concerned(view, partition), ...(wanted === null ? [] : [wanted])]) : new Set(wanted === null ? [] : [wanted]);
  const shapes = [grid(shape, height, framed)];
  const summaries = [];
  const assigned = factAt(view, `p${partition}`, "assignment", step);
  replicas.forEach((replica, index) => {
    shapes.push(replicaRow(view, replica, partition, step, shape, TOP + index * row, row, assigned, marked));
    summaries.push(summary(view, replica, partition, step));
  });
  const leader = (factAt(view, `p${partition}`, "state", step) || {}).leader;
  const truth = replicas.find((replica) => replica.broker === leader);
  clientRows.forEach(([name, rows], index) => shapes.push(clientRow(view, name, rows, truth, step, shape, TOP + replicas.length * row + index * CLIENT_ROW, partition)));
  if (stable !== null) shapes.push(stableLine(stable, shape, height));
  for (const offset of framed) shapes.push(frame(offset, shape, height));
  for (const [number, first, end] of uniqueRanges(marked.offsets)) if (number === partition) shapes.push(range(first, end, shape, height));
  return svg("svg", { width: shape.width, height, viewBox: `0 0 ${shape.width} ${height}`, class: `logs${shape.label < 100 ? " narrow" : ""}`, role: "img", "data-first": shape.first, "data-step": step, "data-stable": stable, "aria-label": `Logs of ${view.partitions[partition]}. ${summaries.join(" ")}${stable === null ? "" : ` Last stable offset shown to a client: ${stable}.`}` }, shapes);
}

/** The last stable offset that clients were shown, through all rows. */
function stableLine(offset, shape, height) {
  const label = `LSO ${offset}, as clients were shown`;
  if (offset < shape.first || offset > shape.first + shape.count) {
    const left = offset < shape.first;
    return words(left ? shape.label + 3 : shape.width - 6, height - 6, left ? `◂ ${label}` : `${label} ▸`, "marker stable", { "text-anchor": left ? "start" : "end" });
  }
  const x = xOf(offset, shape), last = x > shape.width - 170;
  return svg("g", { class: "stableoffset", "data-offset": offset }, svg("line", { x1: x, x2: x, y1: TOP - 6, y2: height - 2, class: "marker stable" }),
    words(x + (last ? -4 : 4), height - 6, label, "marker stable", { "text-anchor": last ? "end" : "start" }));
}

/** What tells records of open and of aborted transactions from others, in a box. */
function transactionMark(fate, x, y, width, height) {
  if (fate === "txn-open") return svg("g", { class: "txnmark open" }, svg("rect", { x: x + width - 13, y, width: 13, height: 8, rx: 2 }), ...[10, 6.5, 3].map((at) => svg("circle", { cx: x + width - at, cy: y + 4, r: 1.1 })));
  if (fate === "txn-aborted") return svg("path", { class: "txnmark aborted", d: `M${x},${y + height} L${x + width},${y}` });
  return null;
}

/** The values that stand at the disputed offset, in any log or answer: where they stand elsewhere is part of the story. */
function valuesAt(view, replicas, known, offset) {
  const found = new Map();
  const rows = [...replicas.flatMap((replica) => replica.blocks), ...known];
  for (const row of rows) {
    if (row.epoch !== -1 || row.operation !== undefined) {
      if (row.base <= offset && offset < row.base + runLength(row.values)) found.set(runValue(row.values, offset - row.base), offset);
    }
  }
  return found;
}

function uniqueRanges(ranges) {
  return [...new Map(ranges.map((one) => [one.join(), one])).values()].slice(0, 60);
}

/** A replica in one sentence, for those who hear the page. */
function summary(view, replica, partition, step) {
  const role = roleOf(factAt(view, `p${partition}b${replica.broker}`, "letter", step)).word;
  const epoch = factAt(view, `p${partition}b${replica.broker}`, "epoch", step);
  const told = transactionsInWords(view, partition, blocksAt(replica, step), step);
  return `Broker ${replica.broker}: ${role}${epoch === null ? "" : `, epoch ${epoch}`}, log end ${valueAt(replica.facts.log_end, step) ?? "unknown"}, high watermark ${valueAt(replica.facts.high_watermark, step) ?? "unknown"}.${told}`;
}

/** Which offsets of these blocks belong to open and to aborted transactions; "" if none does. */
function transactionsInWords(view, partition, blocks, step) {
  if (!view.transactions.length) return "";
  const offsets = { open: [], aborted: [] };
  for (const block of blocks) {
    for (let i = 0; i < runLength(block.values); i++) {
      const one = transactionOf(view, partition, runValue(block.values, i)), fate = one ? fateAt(one, step) : "";
      if (offsets[fate]) offsets[fate].push(block.base + i);
    }
  }
  const named = (list) => list.slice(-12).join(", ") + (list.length > 12 ? ` and ${list.length - 12} before` : "");
  return Object.entries(offsets).filter(([, list]) => list.length).map(([fate, list]) => ` Of ${fate} transactions: offsets ${named(list)}.`).join("");
}

const xOf = (offset, shape) => shape.label + (offset - shape.first) * shape.cell;
const visible = (first, end, shape) => end > shape.first && first < shape.first + shape.count;

function grid(shape, height, framed) {
  const shapes = [];
  for (let i = 0; i <= shape.count; i++) {
    const x = xOf(shape.first + i, shape);
    shapes.push(svg("line", { x1: x, x2: x, y1: TOP - 6, y2: height, class: "gridline" }));
    const offset = shape.first + i;
    if (i < shape.count) shapes.push(words(x + shape.cell / 2, 14, framed.has(offset) ? `◆ ${offset}` : String(offset), framed.has(offset) ? "offset convictmark" : "offset"));
  }
  return svg("g", { "aria-hidden": "true" }, words(2, 14, "offset", "dim"), shapes);
}

/** An offset that the finding is about, through all rows. */
function frame(offset, shape, height) {
  if (!visible(offset, offset + 1, shape)) return null;
  return svg("rect", { x: xOf(offset, shape) - 1.5, y: 19, width: shape.cell + 3, height: height - 21, rx: 4, class: "disputed", "pointer-events": "none", "data-offset": offset });
}

function range(first, end, shape, height) {
  const from = Math.max(first, shape.first), until = Math.min(end, shape.first + shape.count);
  if (from >= until) return null;
  return svg("rect", { x: xOf(from, shape) - 0.5, y: 20, width: (until - from) * shape.cell + 1, height: height - 24, rx: 4, class: "selectedrange", "pointer-events": "none" });
}

function replicaRow(view, replica, partition, step, shape, y, height, assigned, marked) {
  const subject = `p${partition}b${replica.broker}`;
  const letter = factAt(view, subject, "letter", step);
  const role = roleOf(letter), epoch = factAt(view, subject, "epoch", step);
  const top = y + 20;
  const highWatermark = valueAt(replica.facts.high_watermark, step);
  const end = valueAt(replica.facts.log_end, step), start = valueAt(replica.facts.log_start, step);
  const shapes = [svg("rect", { x: 0, y: y + 4, width: shape.label - 8, height: height - 10, rx: 5, class: `rowlabel ${role.kind}${marked.brokers.has(replica.broker) ? " chosen" : ""}` })];
  shapes.push(words(8, y + 21, `${role.sign} broker ${replica.broker}`, "rowname"));
  shapes.push(words(8, y + 35, shortRole(role, shape), "rowrole"));
  shapes.push(words(8, y + 48, epoch === null || epoch === undefined ? (letter === "x" ? "" : "no epoch") : `leader epoch ${epoch}`.slice(shape.label < 100 ? 7 : 0), "rowrole"));
  const alive = blocksAt(replica, step);
  for (const block of alive) shapes.push(...blockShapes(view, step, block, highWatermark, shape, top, partition, letter === "x", ""));
  const gone = ghostsAt(replica, step);
  for (const block of gone) {
    const covers = (other) => other.base < block.base + runLength(block.values) && block.base < other.base + runLength(other.values);
    if (step > block.died && (alive.some(covers) || gone.some((other) => other.died > block.died && covers(other)))) continue;
    const kind = step === block.died && edge < step ? "ghost falling" : step - block.died > RECENT ? "ghost old" : "ghost";
    shapes.push(...blockShapes(view, step, block, null, shape, top, partition, false, kind));
  }
  shapes.push(...marker(highWatermark, "HW", "hw", shape, y, top), ...marker(end, "end", "logend", shape, y, top));
  if (start > 0) shapes.push(...marker(start, "start", "logstart", shape, y, top));
  const clean = valueAt(replica.facts.clean, step);
  if (clean > 0) shapes.push(...marker(clean, "clean", "clean", shape, y, top));
  const outside = assigned && !assigned.includes(replica.broker);
  if (outside) shapes.push(words(shape.label + 4, y + height - 4, "not assigned to this broker now", "dim"));
  return svg("g", { class: `replica ${role.kind}`, "data-broker": replica.broker, "data-hw": highWatermark, "data-end": end, "data-letter": letter, "data-epoch": epoch,
    onclick: (event) => { if (!event.defaultPrevented) update({ selection: { kind: "broker", broker: replica.broker } }); } }, shapes);
}

function shortRole(role, shape) {
  const short = { "believes that it leads": "believes to lead", "follower in the ISR": "follower, in ISR", "follower outside the ISR": "follower, not in ISR" };
  const word = short[role.word] || role.word;
  return shape.label < 100 ? word.replace("follower, ", "").replace("believes to lead", "believes: led") : word;
}

function blockShapes(view, step, block, highWatermark, shape, top, partition, down, extra) {
  const length = runLength(block.values), from = Math.max(block.base, shape.first), until = Math.min(block.base + length, shape.first + shape.count);
  if (from >= until) return [];
  const shapes = [], ghost = extra !== "", lost = !ghost && block.fate === 2;
  for (let offset = from; offset < until; offset++) {
    const value = block.epoch < 0 ? "?" : runValue(block.values, offset - block.base);
    const x = xOf(offset, shape), pattern = epochPattern(block.epoch);
    const open = highWatermark !== null && offset >= highWatermark;
    const kinds = `block ${epochClass(block.epoch)}${open && !ghost ? " uncommitted" : ""}${lost ? " cache" : ""}${down ? " ondown" : ""}`;
    const box = { x: x + 1.5, y: top, width: shape.cell - 3, height: BLOCK, rx: 3 };
    const owner = transactionOf(view, partition, value), fate = owner && !ghost ? fateAt(owner, step) : "";
    shapes.push(svg("g", { class: `record ${extra}${fate ? ` txn-${fate}` : ""}${shape.twins.has(value) && shape.twins.get(value) !== offset ? " twin" : ""}`, "data-offset": offset, "data-value": value, "data-block-epoch": block.epoch, "data-transaction": owner ? owner.id : null, "data-fate": fate || null,
      onclick: (event) => { event.preventDefault(); update({ selection: { kind: "record", partition, offset } }); } },
      svg("title", null, title(view, partition, block, offset, value, ghost) + inTransaction(owner, fate)),
      svg("rect", { ...box, class: kinds }),
      pattern && !ghost ? svg("rect", { ...box, fill: `url(#${pattern})`, class: "patterned" }) : null,
      transactionMark(`txn-${fate}`, box.x, box.y, box.width, box.height),
      words(x + shape.cell / 2, top + 17, shorten(view, value, shape), `value ${epochClass(block.epoch)}${open && !ghost ? " uncommitted" : ""}`)));
  }
  if (ghost) shapes.push(words((xOf(from, shape) + xOf(until, shape)) / 2, top + BLOCK + 14, `${GONE[block.gone]} at ${moment(view.time[block.died], 3)}`, "gone"));
  return shapes;
}

function inTransaction(owner, fate) {
  return owner && fate ? `; of transaction ${owner.id}, ${fate}` : "";
}

function title(view, partition, block, offset, value, ghost) {
  const writer = writerOf(view, partition, value);
  const by = writer === undefined ? "" : `, sent by operation ${view.operations[writer].id}`;
  const fate = ghost ? `; ${GONE[block.gone]}` : block.fate === 2 ? "; will be missing when this broker starts again" : "";
  return `offset ${offset}: value ${contentOf(view, value)}, leader epoch ${block.epoch < 0 ? "unknown" : block.epoch}${by}${fate}`;
}

function shorten(view, value, shape) {
  return contentOf(view, value, Math.floor((shape.cell - 8) / (shape.label < 100 ? 5.9 : 6.3)));
}

function marker(offset, label, kind, shape, y, top) {
  if (offset === null || offset === undefined) return [];
  const inside = offset >= shape.first && offset <= shape.first + shape.count;
  const above = kind === "hw" || kind === "clean";
  const at = above ? y + 15 : kind === "logend" ? top + 10 : top + BLOCK + 12;
  if (!inside) {
    const left = offset < shape.first;
    return [words(left ? shape.label + 3 : shape.width - 6, kind === "logend" ? top + BLOCK + 12 : at, left ? `◂ ${label} ${offset}` : `${label} ${offset} ▸`, `marker ${kind}`, { "text-anchor": left ? "start" : "end" })];
  }
  const x = xOf(offset, shape);
  const last = x > shape.width - 60; // no room to the right of it
  return [
    svg("line", { x1: x, x2: x, y1: above ? y + 6 : top - 3, y2: top + BLOCK + 4, class: `marker ${kind}` }),
    words(x + (last ? -4 : 4), last && kind === "logend" ? top + BLOCK + 12 : at, `${label} ${offset}`, `marker ${kind}`, { "text-anchor": last ? "end" : "start" }),
  ];
}

function clientRow(view, name, rows, truth, step, shape, y, partition) {
  const shapes = [words(8, y + 15, shape.label < 100 && name === "acknowledged" ? "acked" : name, "rowname"), words(8, y + 27, name === "acknowledged" ? "to clients" : "by clients", "rowrole")];
  const latest = new Map();
  for (const row of rows) {
    for (let i = 0; i < runLength(row.values); i++) {
      const offset = row.base + i;
      if (visible(offset, offset + 1, shape)) latest.set(offset, [...(latest.get(offset) || []), { row, value: runValue(row.values, i) }]);
    }
  }
  const held = truth ? blocksAt(truth, step) : [];
  for (const [offset, entries] of latest) {
    const { row, value } = entries[entries.length - 1];
    const several = new Set(entries.map((entry) => entry.value)).size > 1;
    const block = held.find((one) => one.base <= offset && offset < one.base + runLength(one.values));
    const differs = truth && (!block || (block.epoch >= 0 && runValue(block.values, offset - block.base) !== value));
    const belowStart = truth && offset < (valueAt(truth.facts.log_start, step) || 0);
    const x = xOf(offset, shape), wrong = several || (differs && !belowStart && name === "acknowledged");
    const owner = transactionOf(view, partition, value), fate = owner ? fateAt(owner, step) : "";
    const other = several ? entries.map((entry) => contentOf(view, entry.value)).join(", then ") : contentOf(view, value);
    shapes.push(svg("g", { class: `record known${fate ? ` txn-${fate}` : ""}${wrong ? " wrong" : ""}${shape.twins.has(value) && shape.twins.get(value) !== offset ? " twin" : ""}`, "data-offset": offset, "data-value": value, "data-transaction": owner ? owner.id : null, "data-fate": fate || null,
      onclick: (event) => { event.preventDefault(); update({ selection: { kind: "record", partition, offset } }); } },
      svg("title", null, `offset ${offset}: ${other}${inTransaction(owner, fate)} (${name}${row.operation >= 0 ? `, operation ${view.operations[row.operation].id}` : row.step < 0 ? ", before the window" : ""})${wrong ? several ? "; two values at one offset" : "; the leader's log has not got it" : ""}`),
      svg("rect", { x: x + 1.5, y: y + 4, width: shape.cell - 3, height: 22, rx: 3, class: `block ${row.epoch >= 0 ? epochClass(row.epoch) : "plainblock"} clientblock` }),
      transactionMark(`txn-${fate}`, x + 1.5, y + 4, shape.cell - 3, 22),
      words(x + shape.cell / 2, y + 19, shorten(view, value, shape), "value known"),
      wrong ? words(x + shape.cell - 5, y + 7, "≠", "differs") : null));
  }
  return svg("g", { class: "clientrow" }, svg("line", { x1: 0, x2: shape.width, y1: y, y2: y, class: "rowline" }), shapes);
}
