// The bar of the moment: overview, slider, buttons, the moment in words. Owns: how a person moves in time. Must not know panels.

import { nameOf, operationAt, textOf } from "./data.js";
import { moment } from "./marks.js";
import { button, html, replace, svg, widthOf, words } from "./dom.js";
import { current, goTo, nextOf, state, turningPoints, update } from "./state.js";

const OVERVIEW = 46;
let timer = 0;
let parts = null;
let drawnFor = "";

/** Who does something at a step, in words. */
export function whoAt(view, step) {
  const lane = view.moments.lane[step];
  const name = nameOf(view, step).name;
  if (name.startsWith("fault_")) return "fault";
  if (lane < 0) return "the run";
  const node = view.moments.node[step];
  return nameOf(view, step).zk && node >= 0 ? `broker ${node}` : view.lanes[lane].label;
}

/** A moment in words: who, about which partition, what. */
export function momentInWords(view, step) {
  const partition = view.moments.partition[step];
  const where = partition >= 0 ? ` ${view.partitions[partition]}` : "";
  const index = operationAt(view, step);
  if (index < 0) return { who: whoAt(view, step) + where, what: textOf(view, view.moments.text[step]) };
  const one = view.operations[index], asked = `op ${one.id}: ${textOf(view, one.request)}`;
  return { who: whoAt(view, step), what: nameOf(view, step).name === "answer" ? `${asked} → ${textOf(view, one.answer)}` : asked };
}

function jump(steps, direction) {
  goTo(nextOf(steps(), state.step, direction));
}

const convicting = () => current().convictingSteps;
const turning = () => turningPoints(current());

/** Start or stop playing. */
export function play(on) {
  clearInterval(timer);
  update({ playing: on });
  if (!on) return;
  if (state.step >= current().count - 1) goTo(0);
  timer = setInterval(() => {
    if (state.step >= current().count - 1) play(false);
    else goTo(state.step + 1);
  }, 1000 / state.speed);
}

/** Make the bar once. */
export function makeBar(root) {
  const speeds = [[2, "slow"], [6, "normal"], [20, "fast"]];
  parts = {
    overview: html("div", { class: "overview", "aria-hidden": "true" }),
    slider: html("input", { type: "range", id: "slider", min: 0, step: 1, "aria-label": "Moment of the run", oninput: (event) => goTo(Number(event.target.value)) }),
    play: button("▶", "Play (space)", () => play(!state.playing), { class: "main", id: "play" }),
    now: html("output", { class: "now", id: "now", for: "slider" }),
    root,
  };
  replace(root,
    html("div", { class: "controls" },
      html("div", { class: "buttons", role: "group", "aria-label": "Move in time" },
        button("|‹", "To the beginning (Home)", () => goTo(0)),
        button("◆‹", "The moment before that convicts ([)", () => jump(convicting, -1), { class: "bad", id: "convict-back" }),
        button("▲‹", "The turning point before (,)", () => jump(turning, -1)),
        button("‹", "One moment back (left arrow)", () => goTo(state.step - 1), { id: "back" }),
        parts.play,
        button("›", "One moment on (right arrow)", () => goTo(state.step + 1), { id: "on" }),
        button("›▲", "The next turning point (.)", () => jump(turning, 1)),
        button("›◆", "The next moment that convicts (])", () => jump(convicting, 1), { class: "bad", id: "convict" }),
        button("›|", "To the end (End)", () => goTo(current().count - 1)),
        html("select", { "aria-label": "Speed", onchange: (event) => { update({ speed: Number(event.target.value) }); if (state.playing) play(true); } },
          speeds.map(([speed, name]) => html("option", { value: speed, selected: speed === state.speed }, name)))),
      parts.now),
    html("div", { class: "scale" }, parts.overview, parts.slider));
  parts.overview.addEventListener("click", (event) => {
    const box = parts.overview.getBoundingClientRect();
    goTo(Math.round(((event.clientX - box.left) / box.width) * (current().count - 1)));
  });
}

function drawOverview(view) {
  const width = widthOf(parts.overview, 120), last = Math.max(1, view.count - 1);
  const key = `${state.active} ${width}`;
  if (key === drawnFor) return;
  drawnFor = key;
  const x = (step) => (Math.min(Math.max(step, 0), last) / last) * width;
  const shapes = [];
  view.faults.slice(0, 400).forEach((fault, index) => {
    const from = x(fault.began), until = fault.ended < -1 ? width : x(fault.ended);
    shapes.push(svg("rect", { x: from, y: 15 + (index % 4) * 6, width: Math.max(2, until - from), height: 5, class: "faultbar", rx: 1 }, svg("title", null, textOf(view, fault.text))));
  });
  let free = -1;
  for (let step = 0; step < view.count; step++) {
    const name = nameOf(view, step).name;
    if (name === "phase") {
      const text = textOf(view, view.moments.text[step]).replace(" phase", "");
      shapes.push(svg("line", { x1: x(step), x2: x(step), y1: 0, y2: OVERVIEW, class: "phase" }));
      if (x(step) > free && x(step) + text.length * 6 < width) {
        shapes.push(words(x(step) + 3, 10, text, "phasename"));
        free = x(step) + text.length * 6 + 8;
      }
    } else if (name === "became_leader") shapes.push(words(x(step), 45, "▲", "tick"));
  }
  for (const step of view.convictingSteps) {
    shapes.push(svg("line", { x1: x(step), x2: x(step), y1: 12, y2: OVERVIEW, class: "convictline" }), words(x(step), 13, "◆", "convictmark"));
  }
  replace(parts.overview, svg("svg", { width, height: OVERVIEW, viewBox: `0 0 ${width} ${OVERVIEW}` }, shapes));
}

/** Draw the bar for the moment. */
export function drawBar() {
  const view = current(), step = state.step;
  parts.slider.max = String(Math.max(0, view.count - 1));
  parts.slider.value = String(step);
  parts.play.textContent = state.playing ? "❚❚" : "▶";
  parts.play.setAttribute("aria-pressed", String(state.playing));
  drawOverview(view);
  if (!view.count) return;
  const { who, what } = momentInWords(view, step);
  const convicts = view.convictingSteps.includes(step);
  parts.slider.setAttribute("aria-valuetext", `${moment(view.time[step])}, ${who}: ${what}`);
  replace(parts.now,
    html("span", { class: "when" }, `${moment(view.time[step])}`),
    html("span", { class: "count" }, `moment ${view.window.first + step + 1} of ${view.window.total}`),
    html("span", { class: convicts ? "what convicts" : "what" }, convicts ? html("b", null, "◆ convicts: ") : null, html("b", null, `${who}: `), what));
}
