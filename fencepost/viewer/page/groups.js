// Consumer groups at a moment: state, members, positions and commits. Owns: their drawing. Must not know coordinators' logs.

import { clientFactAt, factAt, replicasOf, valueAt } from "./data.js";
import { html, replace, svg, widthOf, words } from "./dom.js";
import { current, state, update } from "./state.js";

/** Make the panel once. */
export function makeGroups(root) {
  replace(root, html("div", { class: "panelhead" }, html("h2", { id: "groups-heading" }, "Consumer groups")), html("div", { class: "body" }),
    html("details", { class: "legend" }, html("summary", null, "What is drawn"), html("p", null, "Of each partition: ◆ what the group has committed, as acknowledged to its members; ▼ where each consumer stands after its last poll; ◇ what a consumer read back. The bar ends at the highest high watermark of a replica.")));
}

const fact = (view, subject, name, step) => { const facts = view.groups.facts[subject]; return facts ? valueAt(facts[name], step) : null; };

/** Draw the groups of the run. */
export function drawGroups(root) {
  const view = current(), step = state.step, body = root.querySelector(".body");
  root.hidden = !view.groups.names.length;
  if (root.hidden) return;
  replace(body, view.groups.names.map((name) => group(view, name, step, widthOf(body, 280))));
}

function group(view, name, step, width) {
  const phase = fact(view, name, "phase", step);
  const consumers = view.groups.consumers.filter(([, of]) => of === name).map(([process, , label]) => ({ process, label }));
  const said = phase ? `${phase.state}, generation ${phase.generation}, ${phase.members} member${phase.members === 1 ? "" : "s"}, coordinator broker ${phase.coordinator} in epoch ${phase.epoch} (${phase.why})` : "not known yet";
  const members = consumers.map(({ process, label }) => {
    const member = fact(view, process, "member", step);
    return html("li", null, html("b", null, label), member ? `: ${member.generation === null ? "" : `generation ${member.generation}, `}has ${member.partitions.join(", ") || "no partitions"}` : ": not joined");
  });
  const rows = view.partitions.filter((partition) => view.groups.facts[name] && view.groups.facts[name][`committed ${partition}`] || consumers.some(({ process }) => view.groups.facts[process] && view.groups.facts[process][`position ${partition}`]));
  return html("section", { class: "group", "data-group": name }, html("h3", null, `Group ${name}`), html("p", null, said), html("ul", { class: "plainlist" }, members), rows.length ? picture(view, name, consumers, rows, step, width) : null);
}

function picture(view, name, consumers, rows, step, width) {
  const left = 74, ROW = 42;
  const ends = rows.map((partition) => endOf(view, view.partitions.indexOf(partition), step));
  const most = Math.max(4, ...ends);
  const x = (offset) => left + (Math.min(offset, most) / most) * (width - left - 40);
  const disputed = view.findings[0] && view.findings[0].offset >= 0 ? [view.partitions[view.findings[0].partition], view.findings[0].offset] : null;
  const shapes = rows.flatMap((partition, index) => {
    const y = index * ROW + 20;
    const committed = fact(view, name, `committed ${partition}`, step);
    const found = [words(4, y + 8, partition, "rowname"), svg("rect", { x: left, y, width: Math.max(1, x(ends[index]) - left), height: 10, rx: 3, class: "groupbar" }), words(x(ends[index]) + 5, y + 9, String(ends[index]), "dim")];
    if (disputed && disputed[0] === partition) found.push(svg("line", { x1: x(disputed[1]), x2: x(disputed[1]), y1: y - 10, y2: y + 22, class: "convictline" }));
    if (committed !== null && committed >= 0) found.push(svg("g", { "data-committed": committed, "data-partition": partition }, svg("title", null, `committed ${committed}`), svg("line", { x1: x(committed), x2: x(committed), y1: y - 2, y2: y + 13, class: "committed" }), words(x(committed), y + 23, `◆ ${committed}`, "committed")));
    for (const { process, label } of consumers) {
      const position = fact(view, process, `position ${partition}`, step), back = fact(view, process, `read back ${partition}`, step);
      if (position !== null) found.push(svg("g", { "data-position": position }, svg("title", null, `${label} stands at ${position}`), words(x(position), y - 3, `▼${process}`, "position")));
      if (back !== null && back >= 0) found.push(svg("g", null, svg("title", null, `${label} read back ${back}`), words(x(back), y + 9, "◇", "readback")));
    }
    return found;
  });
  const height = rows.length * ROW + 8;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "groups", "aria-label": `Group ${name}: ${rows.map((partition) => `${partition} committed ${fact(view, name, `committed ${partition}`, step) ?? "nothing"}`).join(", ")}` }, shapes);
}

function endOf(view, partition, step) {
  let end = clientFactAt(view, partition, "shown_end", step) || 0;
  for (const replica of replicasOf(view, partition)) end = Math.max(end, valueAt(replica.facts.high_watermark, step) || 0);
  return end;
}
