// Cards: one for the curves of a tag, one for what a run has logged under another tag.

import { data, load } from "./data.js";
import { MARGIN, axes, beside, duration, element, number, plot, readout } from "./draw.js";

function card(title, run) {
  const heading = element("h3", {}, title);
  if (run) {
    heading.append(element("span", { class: "of" }, element("span", { class: `swatch ${run.color}` }), ` ${run.label}`));
  }
  return element("article", { class: "card" }, heading);
}

const said = (error) => element("p", { class: "note" }, error.message);

// The curves of a tag. `lines()` gives {name, label, color, steps, times, values} of each run.
export function curves(title, lines) {
  const root = card(title);
  const svg = element("svg", { role: "img", "aria-label": title });
  const box = element("div", { class: "readout", hidden: "" });
  const note = element("p", { class: "note" });
  root.append(svg, note, box);
  let shown = null;
  readout(svg, box, () => shown);
  const draw = ({ smoothing, log, axis }) => {
    const found = lines();
    let [unit, divisor] = ["", 1];
    const spans = found.map((line) => line.times.map((time) => time - data.begins.get(line.name)));
    if (axis === "time") {
      const longest = spans.flat().reduce((a, b) => Math.max(a, b), 0);
      [unit, divisor] = longest < 100 ? [" s", 1] : longest < 6000 ? [" min", 60] : [" h", 3600];
    }
    const points = found.map((line, n) => ({
      label: line.label,
      color: line.color,
      xs: axis === "time" ? spans[n].map((seconds) => seconds / divisor) : line.steps,
      ys: line.values,
      where: (i) => `step ${line.steps[i]}, ${duration(spans[n][i])}`,
    }));
    shown = plot(svg, points, { smoothing, log, unit });
    const odd = found.flatMap((line) => line.values).filter((y) => !Number.isFinite(y)).length;
    const low = log ? found.flatMap((line) => line.values).filter((y) => y <= 0).length : 0;
    const notes = [odd && `${odd} not finite (×)`, low && `${low} not above 0, without a place here`];
    note.textContent = notes.filter(Boolean).join("; ");
  };
  return { root, draw, isEmpty: () => lines().length === 0 };
}

// What a run logged under a tag, a record at a time, with a slider over the steps. `show` makes
// the element of a value.
export function stepper(title, run, series, show) {
  const root = card(title, run);
  const slider = element("input", { type: "range", min: 0, value: 0, "aria-label": `step of ${title}` });
  const at = element("span");
  const body = element("div");
  root.append(element("div", { class: "at" }, at, slider), body);
  let follows = true;
  let number = -1;
  const draw = () => {
    const { numbers, steps, times } = series();
    slider.max = numbers.length - 1;
    slider.hidden = numbers.length < 2;
    if (follows) slider.value = numbers.length - 1;
    const i = Math.min(slider.valueAsNumber, numbers.length - 1);
    at.textContent = `step ${steps[i]}, ${duration(times[i] - data.begins.get(run.name))}`;
    if (numbers[i] === number) return;
    const wanted = (number = numbers[i]);
    load(wanted).then(show, said).then((made) => {
      if (wanted === number) body.replaceChildren(made);
    });
  };
  slider.addEventListener("input", () => {
    follows = slider.valueAsNumber === Number(slider.max);
    draw();
  });
  return { root, draw };
}

const source = (value) => `data:${value.type};base64,${value.data}`;

function picture(value, run, title) {
  const made = element("img", { src: source(value), alt: title, title: "enlarge, or back" });
  made.addEventListener("click", () => made.closest(".card").classList.toggle("whole"));
  made.addEventListener("load", () => made.classList.toggle("small", made.naturalWidth < 200));
  return made;
}

function curve(value, run) {
  const svg = element("svg");
  requestAnimationFrame(() => plot(svg, [{ color: run.color, xs: value.recall.map(Number), ys: value.precision.map(Number) }]));
  return element("div", {}, svg, element("p", { class: "note" }, "precision over recall"));
}

// Kind -> the element of a value.
export const SHOWN = {
  image: picture,
  audio: (value) => element("audio", { src: source(value), controls: "" }),
  text: (value) => element("pre", {}, value),
  pr_curve: curve,
};

const BINS = 70;
const RIDGES = 24;

// Counts per bin of BINS even ones from `low` to `high`, where each bucket is spread evenly.
function rebin({ limits, counts }, low, high) {
  const bins = new Array(BINS).fill(0);
  const size = (high - low) / BINS;
  const within = (x) => Math.max(low, Math.min(high, Number(x)));
  const bin = (x) => Math.min(BINS - 1, Math.floor((x - low) / size));
  counts.map(Number).forEach((count, i) => {
    const [from, to] = [within(limits[Math.max(0, i - 1)]), within(limits[i])];
    if (!(count > 0) || !(from <= to)) return;
    for (let n = bin(from); n <= bin(to); n++) {
      const shared = Math.min(to, low + (n + 1) * size) - Math.max(from, low + n * size);
      bins[n] += from < to ? (count * Math.max(0, shared)) / (to - from) : count;
    }
  });
  return bins;
}

// Histograms over the steps, the oldest behind.
export function histograms(title, run, series) {
  const root = card(title, run);
  const svg = element("svg", { role: "img", "aria-label": title });
  const box = element("div", { class: "readout", hidden: "" });
  const note = element("p", { class: "note" });
  root.append(svg, note, box);
  let ridges = [];
  let drawn = "";
  const put = (found) => {
    const edges = found.flatMap(({ value }) => value.limits.map(Number)).filter(Number.isFinite);
    const [least, most] = [edges.reduce((a, b) => Math.min(a, b), Infinity), edges.reduce((a, b) => Math.max(a, b), -Infinity)];
    const odd = found.at(-1).value.nonfinite;
    note.textContent = odd ? `${odd} values of the newest are not finite` : "";
    if (!edges.length) return svg.replaceChildren();
    const [low, high] = least < most ? [least, most] : [least - 0.5, least + 0.5];
    const { placeX, base, right } = axes(svg, [low, high], [0, 0]);
    const all = found.map(({ value, step }) => ({ step, bins: rebin(value, low, high) }));
    const tall = all.reduce((top, { bins }) => Math.max(top, ...bins), 0) || 1;
    const room = base - MARGIN.top;
    const height = all.length > 1 ? room * 0.4 : room;
    const center = (bin) => placeX(low + ((bin + 0.5) / BINS) * (high - low));
    ridges = all.map(({ step, bins }, n) => {
      const y = all.length > 1 ? base - (1 - n / (all.length - 1)) * (room - height) : base;
      const points = bins.map((count, bin) => `L${center(bin).toFixed(1)} ${(y - (count / tall) * height).toFixed(1)}`);
      const d = `M${center(0).toFixed(1)} ${y.toFixed(1)}${points.join("")}L${center(BINS - 1).toFixed(1)} ${y.toFixed(1)}Z`;
      svg.append(element("path", { class: `ridge ${run.color}`, d }));
      if (n === 0 || n === all.length - 1) {
        svg.append(element("text", { x: MARGIN.left - 6, y: y + 3, "text-anchor": "end" }, String(step)));
      }
      return { step, bins, y, low, high, left: MARGIN.left, right };
    });
  };
  svg.addEventListener("mousemove", (event) => {
    if (!ridges.length) return;
    const bounds = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const at = ridges.reduce((a, b) => (Math.abs(b.y - y) < Math.abs(a.y - y) ? b : a));
    const bin = Math.max(0, Math.min(BINS - 1, Math.floor(((x - at.left) / (at.right - at.left)) * BINS)));
    const edge = (n) => number(at.low + (n / BINS) * (at.high - at.low));
    box.textContent = `step ${at.step}: ${number(at.bins[bin])} from ${edge(bin)} to ${edge(bin + 1)}`;
    beside(box, svg, x, y);
  });
  svg.addEventListener("mouseleave", () => (box.hidden = true));
  const draw = ({ resized }) => {
    const { numbers, steps } = series();
    let every = 1; // a power of two, so that most stay the same when some come
    while (numbers.length > RIDGES * every) every *= 2;
    const picked = [];
    for (let i = 0; i < numbers.length; i += every) picked.push(i);
    if (picked.at(-1) !== numbers.length - 1) picked.push(numbers.length - 1);
    const wanted = picked.map((i) => numbers[i]).join(" ");
    if (wanted === drawn && !resized) return;
    drawn = wanted;
    const values = picked.map((i) => load(numbers[i]).then((value) => ({ value, step: steps[i] })));
    Promise.all(values).then((found) => wanted === drawn && put(found), (error) => (note.textContent = error.message));
  };
  return { root, draw };
}

// A row for each run: its hyperparameters, and the last values of its metrics.
export function sheet(rows) {
  const root = element("article", { class: "card whole" });
  let [sorted, down] = [null, false];
  const draw = () => {
    const found = rows();
    const names = [...new Set(found.flatMap((row) => [...row.cells.keys()]))];
    if (sorted !== null) {
      const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? "")));
      found.sort((a, b) => (down ? -1 : 1) * order(a.cells.get(sorted), b.cells.get(sorted)));
    }
    const head = names.map((name) => {
      const cell = element("th", { title: "sort" }, name + (name === sorted ? (down ? " ↓" : " ↑") : ""));
      cell.addEventListener("click", () => {
        [sorted, down] = [name, name === sorted && !down];
        draw();
      });
      return cell;
    });
    const table = element("table", { class: "sheet" }, element("tr", {}, element("th", {}, "run"), ...head));
    for (const { run, cells } of found) {
      const name = element("td", {}, element("span", { class: `swatch ${run.color}` }), ` ${run.label}`);
      const show = (value) => (value === undefined ? "" : typeof value === "number" ? number(value) : String(value));
      table.append(element("tr", {}, name, ...names.map((key) => element("td", {}, show(cells.get(key))))));
    }
    root.replaceChildren(table);
  };
  return { root, draw };
}
