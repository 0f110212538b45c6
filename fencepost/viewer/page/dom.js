// Elements. Owns: that every text of a trace becomes a text node. Must not know what is shown.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** An HTML element. Attributes that begin with "on" are listeners; children are elements or texts. */
export function html(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Put these children into an element in place of what is there. */
export function replace(element, ...children) {
  element.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
}

/** A button with a name for those who do not see it. */
export function button(label, name, onclick, attributes) {
  return html("button", { type: "button", "aria-label": name, title: name, onclick, ...attributes }, label);
}

/** A text in SVG. */
export function words(x, y, text, kind, attributes) {
  return svg("text", { x, y, class: kind, ...attributes }, text);
}

const widths = new Map();

/** The width that an element has on the screen, at least `least`. Kept until the window changes: asking makes the browser lay out the whole page. */
export function widthOf(element, least) {
  if (!widths.has(element)) {
    const style = getComputedStyle(element);
    widths.set(element, element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
  }
  return Math.max(least, Math.floor(widths.get(element)));
}

/** The window has another size. */
export function forgetWidths() {
  widths.clear();
}

/** Patterns that stand over colours. One copy for the page. */
export function patterns() {
  const make = (id, size, ...shapes) => svg("pattern", { id, width: size, height: size, patternUnits: "userSpaceOnUse" }, ...shapes);
  return svg("svg", { width: 0, height: 0, class: "defs", "aria-hidden": "true" }, svg("defs", null,
    make("stripes", 7, svg("path", { d: "M-1,8 L8,-1 M-4.5,4.5 L4.5,-4.5 M2.5,11.5 L11.5,2.5", class: "ink" })),
    make("dots", 6, svg("circle", { cx: 3, cy: 3, r: 1.1, class: "inkfill" })),
    make("hatch", 6, svg("path", { d: "M0,6 L6,0", class: "hatching" })),
    make("cross", 7, svg("path", { d: "M0,7 L7,0 M0,0 L7,7", class: "hatching" })),
    svg("marker", { id: "arrowhead", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" },
      svg("path", { d: "M0,0.5 L8,4 L0,7.5 Z", class: "arrowhead" }))));
}
