// Words, colours and classes of what is drawn. Owns: how a thing looks and is called. Must not know when it is drawn.

/** Okabe and Ito's colours, which people with any common colour blindness tell apart; a class of style.css each. Epochs take them in turn. */
export const EPOCH_COLOURS = 7;

/** The classes of a leader epoch. Two neighbours differ in colour and in pattern. */
export function epochClass(epoch) {
  if (epoch < 0) return "epoch-unknown";
  return `epoch-${epoch % EPOCH_COLOURS}`;
}

/** The pattern over a block, so that colour is not the only difference; "" for every third epoch, which has none. */
export function epochPattern(epoch) {
  return epoch < 0 ? "" : ["", "stripes", "dots"][epoch % 3];
}

/** Of each letter of lanes.py: a sign, a word, a class. */
export const ROLES = {
  L: { sign: "●", word: "leader", kind: "leader" },
  l: { sign: "◐", word: "believes that it leads", kind: "believes" },
  f: { sign: "○", word: "follower in the ISR", kind: "follower" },
  o: { sign: "◌", word: "follower outside the ISR", kind: "outside" },
  x: { sign: "✕", word: "down", kind: "down" },
  z: { sign: "‖", word: "paused", kind: "paused" },
  ".": { sign: "·", word: "no role yet", kind: "norole" },
};

/** The role of a letter; no role where nothing is known. */
export function roleOf(letter) {
  return ROLES[letter] || ROLES["."];
}

/** How records went, by number of replica_logs.Gone. */
export const GONE = ["", "cut", "lost at the restart", "log started over", "below the log start", "overwritten"];

/** Kinds of messages, by number of messages.MessageKind. */
export const MESSAGES = [
  { kind: "produce", word: "produce and answer" },
  { kind: "copy", word: "follower's fetch" },
  { kind: "control", word: "controller's request" },
  { kind: "zookeeper", word: "ZooKeeper's writes" },
  { kind: "read", word: "answers to reads" },
];
export const FATES = ["arrived", "lost", "late", "refused"];
export const OUTCOMES = ["ok", "fail", "unknown"];
export const OUTCOME_SIGNS = ["", "✕", "?"];

/** Groups of moment names for the filter. A name that is in none belongs to "other". */
export const KINDS = [
  ["faults", ["fault_began", "fault_ended", "fault_skipped", "phase", "liveness_failed", "log_directory_failed", "implementation_error"]],
  ["roles", ["became_leader", "became_follower", "partition_state", "broker_started", "broker_state"]],
  ["logs", ["appended", "truncated", "log_recovered", "log_start", "compacted", "replica_log", "follower_failed"]],
  ["high watermark", ["high_watermark"]],
  ["ISR", ["isr_proposed", "isr_updated", "isr_refused"]],
  ["control", ["controller_elected", "controller_resigned", "controller_write_refused", "control_request_applied", "control_request_refused", "controller_epoch", "controller_znode", "live_brokers"]],
  ["sessions", ["broker_znode", "broker_registered", "session_expired", "fetch_refused"]],
  ["groups", ["groups_loaded", "groups_unloaded", "group_phase", "group_offset_expired", "group_removed"]],
  ["operations", ["invoke", "answer"]],
];
export const OTHER_KIND = "other";

/** The filter group of a name. */
export function kindOf(name) {
  const found = KINDS.find(([, names]) => names.includes(name));
  return found ? found[0] : OTHER_KIND;
}

const UNITS = [["s", 1e9, 6], ["ms", 1e6, 3], ["µs", 1e3, 3], ["ns", 1, 0]];
let unit = UNITS[0];

/** Choose the unit of all moments of the page: the largest of which a run of this length has one; none where a run has an order and no times. */
export function measureIn(nanoseconds, timed) {
  unit = !timed ? null : UNITS.find(([, size]) => nanoseconds >= size) || UNITS[UNITS.length - 1];
}

/** A moment of the run in the page's unit, exact to the microsecond as the text timeline writes it, or to the nanosecond. */
export function moment(nanoseconds, digits) {
  if (!unit) return `place ${nanoseconds + 1}`;
  const [name, size, exact] = unit;
  return `${(nanoseconds / size).toFixed(Math.min(digits ?? exact, exact))} ${name}`;
}

/** Nanoseconds in the unit that a person would take. */
export function duration(nanoseconds) {
  if (nanoseconds >= 1e9) return `${(nanoseconds / 1e9).toFixed(1)} s`;
  if (nanoseconds >= 1e6) return `${(nanoseconds / 1e6).toFixed(1)} ms`;
  if (nanoseconds >= 1e3) return `${(nanoseconds / 1e3).toFixed(1)} µs`;
  return `${nanoseconds} ns`;
}

/** A set of broker ids as Kafka writes it. */
export function ids(list) {
  return list && list.length ? `{${list.join(", ")}}` : "{}";
}
