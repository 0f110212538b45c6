// Who believes what: brokers, controllers, ZooKeeper, as tables. Owns: the text alternative of the drawings. Must not know geometry.

import { brokersOf, clientFactAt, factAt, replicasOf, valueAt } from "./data.js";
import { ids, roleOf } from "./marks.js";
import { html, replace } from "./dom.js";
import { current, related, state, update } from "./state.js";

/** Make the panel once. */
export function makeCluster(root) {
  replace(root, html("div", { class: "panelhead" }, html("h2", { id: "cluster-heading" }, "Who believes what")), html("div", { class: "body" }));
}

function cell(now, before, kind) {
  const text = now === null || now === undefined || now === "" ? "–" : String(now);
  return html("td", { class: `${kind || ""}${now !== before ? " changed" : ""}` }, text);
}

/** Draw the tables for the moment; what changed with it is marked. */
export function drawCluster(root) {
  const view = current(), step = state.step, body = root.querySelector(".body");
  const brokers = brokersOf(view);
  root.hidden = !brokers.length;
  if (root.hidden) return;
  replace(body, zookeeper(view, step), brokerTable(view, step, brokers), clientFacts(view, step));
}

function zookeeper(view, step) {
  const partition = state.partition, before = step - 1;
  const show = (at) => {
    const held = factAt(view, `p${partition}`, "state", at);
    const controller = factAt(view, "zk", "controller", at);
    const moving = factAt(view, `p${partition}`, "reassignment", at);
    return {
      "/controller": controller === null ? null : controller < 0 ? "nobody" : `broker ${controller}`,
      "controller epoch": factAt(view, "zk", "controller_epoch", at),
      registered: ids((factAt(view, "zk", "brokers", at) || []).map(([node]) => node)),
      leader: held ? (held.leader < 0 ? "nobody" : `broker ${held.leader}`) : null,
      "leader epoch": held ? held.leader_epoch : null,
      ISR: held ? ids(held.isr) : null,
      version: held ? held.version : null,
      "written by": held ? `controller epoch ${held.controller_epoch}` : null,
      replicas: ids(factAt(view, `p${partition}`, "assignment", at) || []),
      ...(moving && moving.length ? { "moving to": ids(moving) } : {}),
    };
  };
  const now = show(step), earlier = show(before);
  return html("div", { class: "facts", id: "zk-facts" }, html("h3", null, `ZooKeeper, ${view.partitions[partition] ?? ""}`),
    html("dl", null, Object.entries(now).map(([name, value]) => html("div", { class: value !== earlier[name] ? "changed" : "", "data-fact": name }, html("dt", null, name), html("dd", null, value === null || value === undefined ? "–" : String(value))))));
}

function brokerFacts(view, broker, step) {
  const subject = `p${state.partition}b${broker}`;
  const replica = replicasOf(view, state.partition).find((one) => one.broker === broker);
  const letter = factAt(view, subject, "letter", step), role = roleOf(letter);
  const isr = factAt(view, subject, "isr", step), proposes = factAt(view, subject, "proposes", step);
  const controller = factAt(view, `b${broker}`, "controller", step);
  const session = factAt(view, `b${broker}`, "session", step);
  return {
    role: `${role.sign} ${role.word}`,
    epoch: factAt(view, subject, "epoch", step),
    "high watermark": replica ? valueAt(replica.facts.high_watermark, step) : null,
    "log end": replica ? valueAt(replica.facts.log_end, step) : null,
    "its ISR": proposes ? `asks for ${ids(proposes)}` : isr ? ids(isr) : null,
    controller: controller !== null && controller >= 0 ? `believes, epoch ${controller}` : null,
    obeys: factAt(view, `b${broker}`, "obeys", step),
    "knows alive": ids(factAt(view, `b${broker}`, "knows", step) || []),
    session: session !== null && session >= 0 ? session : null,
    process: factAt(view, `b${broker}`, "process", step) === "up" ? factAt(view, `b${broker}`, "state", step) : factAt(view, `b${broker}`, "process", step),
  };
}

function brokerTable(view, step, brokers) {
  const marked = related();
  const columns = brokers.map((broker) => ({ broker, now: brokerFacts(view, broker, step), before: brokerFacts(view, broker, step - 1) }));
  const names = Object.keys(columns[0].now);
  const heading = (name) => ({ epoch: "leader epoch", obeys: "obeys controller epoch", session: "registered as broker epoch" })[name] || name;
  return html("div", { class: "scroll" }, html("table", { class: "brokers" },
    html("thead", null, html("tr", null, html("th", { scope: "col" }, ""), columns.map(({ broker }) => html("th", { scope: "col", class: marked.brokers.has(broker) ? "chosen" : "" },
      html("button", { type: "button", class: "plain", onclick: () => update({ selection: { kind: "broker", broker } }) }, `broker ${broker}`))))),
    html("tbody", null, names.map((name) => html("tr", { "data-row": name }, html("th", { scope: "row" }, heading(name)),
      columns.map(({ now, before }) => cell(now[name], before[name], name === "role" ? "role" : "")))))));
}

function clientFacts(view, step) {
  const facts = [["shown_end", "high watermark last shown to a client"], ["last_stable_offset", "last stable offset last shown"], ["log_start", "log start last shown"]]
    .map(([name, label]) => [label, clientFactAt(view, state.partition, name, step)]).filter(([, value]) => value !== null);
  return facts.length ? html("p", { class: "dim small" }, facts.map(([label, value]) => `${label}: ${value}`).join(" · ")) : null;
}
