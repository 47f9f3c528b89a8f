// Drawing: elements, numbers as text, axes, lines, and the values under the pointer.

export function element(name, attributes = {}, ...children) {
  const made = name === "svg" || name in SVG
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children); // strings become text, never markup
  return made;
}
const SVG = { path: 1, line: 1, circle: 1, text: 1, g: 1 };

export function number(x) {
  if (!Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(2).replace(/\.?0+e/, "e");
  return String(Number(x.toPrecision(4)));
}

export function duration(seconds) {
  if (seconds < 100) return `${number(Math.round(seconds * 10) / 10)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${number(Math.round(seconds / 360) / 10)} h`;
}

// Round values from `low` to `high`, about `count` of them.
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999) ?? 10 * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= high / step + 1e-9; i++) found.push(i * step);
  return found.map((x) => Number(x.toPrecision(12)));
}

function powers(low, high) { // of ten, both ends are logarithms
  const every = Math.max(1, Math.ceil((high - low) / 5));
  const found = [];
  for (let i = Math.ceil(low); i <= high; i += every) found.push(i);
  return found.length > 1 ? found : ticks(10 ** low, 10 ** high, 4).filter((y) => y > 0).map(Math.log10);
}

function range(lists, floor) {
  let low = Infinity;
  let high = -Infinity;
  for (const list of lists) {
    for (const x of list) {
      if (Number.isFinite(x)) {
        if (x < low) low = x;
        if (x > high) high = x;
      }
    }
  }
  if (low > high) return [0, 1];
  const spare = low === high ? Math.abs(low) * 0.1 || floor : 0;
  return [low - spare, high + spare];
}

// Exponential moving average with the start's bias taken out (Kingma and Ba, 2015, section 3).
export function smooth(ys, weight) {
  if (!weight) return ys;
  let mean = 0;
  let share = 0;
  return ys.map((y) => {
    if (!Number.isFinite(y)) return y;
    mean = weight * mean + (1 - weight) * y;
    share = weight * share + (1 - weight);
    return mean / share;
  });
}

export const MARGIN = { left: 50, right: 10, top: 8, bottom: 20 };

// Axes for points within the given ranges; the functions that place them. For logarithmic axes the
// range of y is one of logarithms.
export function axes(svg, [x0, x1], [y0, y1], { log = false, unit = "", bottom = 0 } = {}) {
  const width = svg.clientWidth || 330;
  const height = svg.clientHeight || 200;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const right = width - MARGIN.right;
  const base = height - MARGIN.bottom - bottom;
  const placeX = (x) => MARGIN.left + ((x - x0) / (x1 - x0)) * (right - MARGIN.left);
  const placeY = (y) => base - ((y - y0) / (y1 - y0)) * (base - MARGIN.top);
  for (const x of ticks(x0, x1, Math.max(2, width / 65))) {
    svg.append(element("line", { class: "grid", x1: placeX(x), x2: placeX(x), y1: MARGIN.top, y2: base }));
    const at = { x: placeX(x), y: base + 15, "text-anchor": "middle" };
    svg.append(element("text", at, number(x) + unit));
  }
  if (y1 > y0) {
    for (const y of log ? powers(y0, y1) : ticks(y0, y1, 4)) {
      svg.append(element("line", { class: "grid", x1: MARGIN.left, x2: right, y1: placeY(y), y2: placeY(y) }));
      const at = { x: MARGIN.left - 6, y: placeY(y) + 4, "text-anchor": "end" };
      svg.append(element("text", at, number(log ? 10 ** y : y)));
    }
  }
  return { placeX, placeY, width, height, base, right };
}

// A path through points; of many in one column of pixels the first, lowest, highest and last.
function path(xs, ys) {
  const parts = [];
  let column = [];
  let open = false;
  const put = () => {
    const low = column.reduce((a, i) => (ys[i] < ys[a] ? i : a), column[0]);
    const high = column.reduce((a, i) => (ys[i] > ys[a] ? i : a), column[0]);
    const kept = new Set([column[0], Math.min(low, high), Math.max(low, high), column.at(-1)]);
    for (const i of kept) {
      parts.push(`${open ? "L" : "M"}${xs[i].toFixed(1)} ${ys[i].toFixed(1)}`);
      open = true;
    }
    column = [];
  };
  for (let i = 0; i < xs.length; i++) {
    if (column.length && (!Number.isFinite(ys[i]) || Math.round(xs[i]) !== Math.round(xs[column[0]]))) put();
    if (Number.isFinite(ys[i])) column.push(i);
    else open = false;
  }
  if (column.length) put();
  return parts.join("");
}

// Draw lines {label, color, xs, ys, where}; `smoothing` puts the mean before the values, `log` draws
// logarithms. Returns what `readout` needs.
export function plot(svg, lines, { smoothing = 0, log = false, unit = "" } = {}) {
  const scale = log ? (y) => (y > 0 ? Math.log10(y) : y === 0 || y < 0 ? NaN : y) : (y) => y;
  const drawn = lines.map((line) => ({
    ...line,
    raw: line.ys.map(scale),
    mean: smooth(line.ys, smoothing),
  }));
  const [low, high] = range(drawn.map((line) => line.raw), log ? 0.5 : 1);
  const spread = [low - (high - low) * 0.03, high + (high - low) * 0.03];
  const place = axes(svg, range(drawn.map((line) => line.xs), 1), spread, { log, unit });
  for (const line of drawn) {
    const px = line.xs.map(place.placeX);
    line.px = px;
    line.py = line.mean.map((y) => place.placeY(scale(y)));
    const look = `line ${line.color}`;
    if (smoothing) svg.append(element("path", { class: `${look} raw`, d: path(px, line.raw.map(place.placeY)) }));
    svg.append(element("path", { class: look, d: path(px, line.py) }));
    const finite = line.py.filter(Number.isFinite);
    if (finite.length === 1) {
      const i = line.py.findIndex(Number.isFinite);
      svg.append(element("circle", { class: `dot ${line.color}`, cx: px[i], cy: line.py[i], r: 3 }));
    }
    const marks = line.ys.map((y, i) => [y, px[i]]).filter(([y]) => !Number.isFinite(y)).slice(-500);
    const crosses = marks.map(([y, x]) => `M${x - 3} ${(y > 0 ? MARGIN.top : place.base) - 3}l6 6m0-6l-6 6`);
    if (crosses.length) svg.append(element("path", { class: "mark", d: crosses.join("") }));
  }
  return { ...place, lines: drawn, smoothing };
}

// Put a box beside the pointer, within its card.
export function beside(box, svg, x, y) {
  box.hidden = false;
  const left = svg.offsetLeft ?? 0;
  const flip = x > svg.clientWidth / 2;
  box.style.left = flip ? "" : `${left + x + 26}px`;
  box.style.right = flip ? `${svg.clientWidth - x + 26}px` : "";
  box.style.top = `${y + 34}px`;
}

// The values at the pointer: for each line those whose x is nearest to it.
export function readout(svg, box, shown) {
  const cursor = element("line", { class: "cursor", y1: MARGIN.top, visibility: "hidden" });
  let current = null;
  svg.addEventListener("mousemove", (event) => {
    current = shown();
    const bounds = svg.getBoundingClientRect();
    const [mx, my] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const rows = [];
    for (const line of current?.lines ?? []) {
      let best = -1;
      line.px.forEach((x, i) => {
        if (best < 0 || Math.abs(x - mx) <= Math.abs(line.px[best] - mx)) best = i;
      });
      if (best >= 0) rows.push({ line, i: best, far: Math.abs(line.py[best] - my) });
    }
    if (!rows.length) return;
    const near = rows.reduce((a, b) => (b.far < a.far ? b : a));
    const at = near.line.px[near.i];
    for (const [key, value] of Object.entries({ x1: at, x2: at, y2: current.base, visibility: "visible" })) {
      cursor.setAttribute(key, value);
    }
    svg.append(cursor);
    const table = element("table");
    for (const row of rows.slice(0, 12)) {
      const { line, i } = row;
      const cells = [element("td", {}, element("span", { class: `swatch ${line.color}` }))];
      cells.push(element("td", { class: "run" }, line.label), element("td", {}, number(line.ys[i])));
      if (current.smoothing) cells.push(element("td", {}, `∅ ${number(line.mean[i])}`));
      cells.push(element("td", {}, line.where(i)));
      table.append(element("tr", row === near ? { class: "near" } : {}, ...cells));
    }
    box.replaceChildren(table);
    beside(box, svg, mx, my);
  });
  svg.addEventListener("mouseleave", () => {
    box.hidden = true;
    cursor.remove();
  });
}
