// Reads the data that view.py wrote. Owns: the decoding, and the value of anything at a step. Must not know the page.
//
// A step is an index into the moments of the window. Before the window everything has step -1; -2 means never.

export const NEVER = -2;

/** Number of the last entry of an ascending list that is <= x; -1 if there is none. */
export function lastAtMost(list, x) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= x) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/** The value of a track at a step; null where it is not known yet. */
export function valueAt(track, step) {
  if (!track) return null;
  const place = lastAtMost(track.steps, step);
  return place < 0 ? null : track.values[place];
}

/** How many values a run of values_as_run has. */
export function runLength(run) {
  return Array.isArray(run[0]) ? run[0].length : run[1] || 0;
}

/** The value number `index` of a run, as a text. */
export function runValue(run, index) {
  return String(Array.isArray(run[0]) ? run[0][index] : run[0] + index);
}

/** What a record with this value says, without its middle where it is too long: records often begin alike. The value itself, its last digits where it is cut, if that is not known. */
export function contentOf(view, value, most = Infinity) {
  const said = view.contents[value];
  if (said === undefined) return value.length <= most ? value : `…${value.slice(-(most - 1))}`;
  const tail = Math.floor((most - 1) / 2);
  return said.length <= most ? said : `${said.slice(0, most - 1 - tail)}…${said.slice(said.length - tail)}`;
}

/** Rows out of columns. */
function rowsOf(columns) {
  const names = Object.keys(columns);
  const length = names.length ? columns[names[0]].length : 0;
  const rows = new Array(length);
  for (let i = 0; i < length; i++) {
    const row = { index: i };
    for (const name of names) row[name] = columns[name][i];
    rows[i] = row;
  }
  return rows;
}

/** One view, ready to be asked. */
export function decodeView(raw) {
  const moments = raw.moments, count = moments.wait.length;
  const time = new Float64Array(count);
  for (let i = 0, now = 0; i < count; i++) time[i] = now += moments.wait[i];
  const view = {
    ...raw,
    count,
    time,
    operations: rowsOf(raw.operations),
    messages: rowsOf(raw.messages),
    replicas: raw.replicas.map((one) => ({ ...one, blocks: rowsOf(one.blocks) })),
    clients: raw.clients.map((one) => ({ ...one, known: rowsOf(one.known) })),
    transactions: rowsOf(raw.transactions),
  };
  view.operationById = new Map(view.operations.map((one) => [String(one.id), one.index]));
  view.writers = new Map();
  for (const one of view.operations) {
    for (let i = 0; i < runLength(one.writes); i++) view.writers.set(`${one.partition}:${runValue(one.writes, i)}`, one.index);
  }
  readTransactions(view);
  view.convicting = new Set(raw.findings.length ? raw.findings[0].operations.map((id) => view.operationById.get(String(id))) : []);
  view.convictingSteps = raw.findings.length ? raw.findings[0].steps : [];
  view.sentSteps = view.messages.map((one) => one.sent);
  return view;
}

/** Which transaction an operation is (part of), and which one a record belongs to. */
function readTransactions(view) {
  view.transactionOfOperation = new Map();
  view.transactionOfRecord = new Map();
  for (const one of view.transactions) {
    for (const index of [one.operation, ...one.parts]) if (index >= 0) view.transactionOfOperation.set(index, one.index);
    for (const [partition, , values] of one.records) {
      for (let i = 0; i < runLength(values); i++) view.transactionOfRecord.set(`${partition}:${runValue(values, i)}`, one.index);
    }
  }
}

/** The operation that sent a value to a partition; undefined if none did. Values may be unique in their partition only. */
export function writerOf(view, partition, value) {
  const known = view.writers.get(`${partition}:${value}`);
  return known === undefined ? view.writers.get(`-1:${value}`) : known;
}

/** The transaction of a value in a partition; undefined if it has none. */
export function transactionOf(view, partition, value) {
  const number = view.transactionOfRecord.get(`${partition}:${value}`);
  return number === undefined ? undefined : view.transactions[number];
}

/** What a transaction is at a step: "", open, committed, aborted. */
export function fateAt(transaction, step) {
  if (step < transaction.began) return "";
  return transaction.ended === NEVER || step < transaction.ended ? "open" : ["open", "committed", "aborted"][transaction.fate];
}

/** The step of the last moment at or before a time; 0 if all are later. */
export function stepAtTime(view, time) {
  return Math.max(0, lastAtMost(view.time, time));
}

/** The text with a number. */
export function textOf(view, number) {
  return view.texts[number];
}

/** The name entry of a moment: {name, level, zk}. */
export function nameOf(view, step) {
  return view.names[view.moments.name[step]];
}

/** A fact of the cluster at a step, such as ("p0b1", "letter"). */
export function factAt(view, subject, name, step) {
  const facts = view.facts[subject];
  return facts ? valueAt(facts[name], step) : null;
}

/** What is invoked or answered at a step: the index of the operation; -1 for an event. */
export function operationAt(view, step) {
  const name = nameOf(view, step).name;
  return name === "invoke" || name === "answer" ? view.moments.ref[step] : -1;
}

/** The blocks that a replica holds at a step. */
export function blocksAt(replica, step) {
  return replica.blocks.filter((block) => block.born <= step && (block.died < 0 || step < block.died));
}

/** The blocks that are gone at a step, but for those that retention took. */
export function ghostsAt(replica, step) {
  return replica.blocks.filter((block) => block.died >= 0 && block.died <= step && block.gone !== 4);
}

/** What clients know of a partition at a step: rows of `known`. */
export function knownAt(view, partition, step) {
  const one = view.clients.find((entry) => entry.partition === partition);
  return one ? one.known.filter((row) => row.step <= step) : [];
}

/** A client's fact of a partition, such as shown_end. */
export function clientFactAt(view, partition, name, step) {
  const one = view.clients.find((entry) => entry.partition === partition);
  return one ? valueAt(one.facts[name], step) : null;
}

/** Brokers that have a replica of a partition, or ever had. */
export function replicasOf(view, partition) {
  return view.replicas.filter((one) => one.partition === partition).sort((a, b) => a.broker - b.broker);
}

/** All brokers. */
export function brokersOf(view) {
  return view.lanes.filter((lane) => lane.kind === "broker").map((lane) => Number(lane.id.slice(1)));
}
