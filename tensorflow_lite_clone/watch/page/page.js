// The page: settings, runs, and cards in groups.

import { curves, histograms, sheet, SHOWN, stepper } from "./cards.js";
import { data, follow } from "./data.js";
import { duration, element } from "./draw.js";

const $ = (id) => document.getElementById(id);
const settings = { smoothing: 0, log: false, axis: "step" };
const off = new Set(); // runs that are not shown
const cards = new Map(); // key -> {root, draw, tag, run, dirty, visible}
const groups = new Map(); // name -> {root, body, count}
const OPEN = 24; // a group of more cards begins closed
const RATE = "throughput/steps per second (from the records' times)";

const run = (name) => {
  const n = data.runs.indexOf(name);
  return { name, label: name === "." ? "(this folder)" : name, color: `c${n % 8}${n % 16 < 8 ? "" : " dashed"}` };
};

// -- cards --------------------------------------------------------------------------------------

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const found = cards.get(target.dataset.key);
    if (found) found.visible = isIntersecting;
  }
  redraw();
}, { rootMargin: "200px" });

function group(name) {
  if (!groups.has(name)) {
    const count = element("small");
    const body = element("div", { class: "cards" });
    const root = element("details", { open: "" }, element("summary", {}, name, count), body);
    groups.set(name, { root, body, count });
    document.querySelector("main").append(root);
  }
  return groups.get(name);
}

function place(key, name, tag, of, made) {
  const card = { ...made, tag, run: of, dirty: true, visible: false };
  cards.set(key, card);
  card.root.dataset.key = key;
  group(name).body.append(card.root);
  watcher.observe(card.root);
}

const prefix = (tag) => (tag.indexOf("/") > 0 ? tag.slice(0, tag.indexOf("/")) : "scalars");
const rest = (tag) => tag.slice(tag.indexOf("/") + 1);

// Steps per second of a run, where nobody logged how fast it was: between records of the scalar
// that it has most of, in at most 200 stretches.
function rate(name) {
  let most = null;
  for (const runs of data.kinds.get("scalar").values()) {
    const series = runs.get(name);
    if (series && series.steps.length > (most?.steps.length ?? 1)) most = series;
  }
  const made = { steps: [], times: [], values: [] };
  const stride = Math.max(1, Math.ceil((most?.steps.length ?? 0) / 200));
  for (let i = stride; i < (most?.steps.length ?? 0); i += stride) {
    const steps = most.steps[i] - most.steps[i - stride];
    const seconds = most.times[i] - most.times[i - stride];
    if (steps > 0 && seconds > 0) {
      made.steps.push(most.steps[i]);
      made.times.push(most.times[i]);
      made.values.push(steps / seconds);
    }
  }
  return made;
}

const shownRuns = (runs) => data.runs.filter((name) => runs.has(name) && !off.has(name));

function placeScalars(tags) {
  for (const tag of tags.keys()) {
    const key = `scalar ${tag}`;
    if (cards.has(key)) continue;
    const lines = () => {
      const runs = data.kinds.get("scalar")?.get(tag) ?? new Map();
      return shownRuns(runs).map((name) => ({ ...run(name), ...runs.get(name) }));
    };
    place(key, prefix(tag), tag, null, curves(rest(tag), lines));
  }
  const logged = [...tags.keys()].some((tag) => /throughput|per.?second|\/s\b/i.test(tag));
  if (tags.size && !logged && !cards.has(RATE)) {
    const lines = () => data.runs.filter((name) => !off.has(name)).map((name) => ({ ...run(name), ...rate(name) }))
      .filter((line) => line.steps.length);
    place(RATE, "throughput", RATE, null, curves(rest(RATE), lines));
  }
}

const GROUPS = { histogram: "histograms", image: "pictures", audio: "sound", text: "text", pr_curve: "precision and recall" };

function placeOthers(kind, tags) {
  for (const [tag, runs] of tags) {
    for (const name of runs.keys()) {
      const key = `${kind} ${tag} ${name}`;
      if (cards.has(key)) continue;
      const of = run(name);
      const series = () => data.kinds.get(kind).get(tag).get(name);
      const made = kind === "histogram"
        ? histograms(tag, of, series)
        : stepper(tag, of, series, (value) => SHOWN[kind](value, of, tag));
      place(key, GROUPS[kind], tag, name, made);
    }
  }
}

function hyperparameters() {
  const scalars = data.kinds.get("scalar") ?? new Map();
  const found = data.kinds.get("hparams").get("hparams") ?? new Map();
  return shownRuns(found).map((name) => {
    const { hparams, metrics } = found.get(name).values.at(-1);
    const cells = new Map(Object.entries(hparams));
    for (const metric of metrics) cells.set(metric, scalars.get(metric)?.get(name)?.values.at(-1));
    return { run: run(name), cells };
  });
}

function placeAll() {
  const other = [];
  for (const [kind, tags] of data.kinds) {
    if (kind === "scalar") placeScalars(tags);
    else if (kind in GROUPS) placeOthers(kind, tags);
    else if (kind === "hparams") {
      if (!cards.has(kind)) place(kind, "hyperparameters", "hyperparameters", null, sheet(hyperparameters));
    } else other.push(`${kind} (${[...tags.keys()].join(", ")})`);
  }
  return other.length ? [`written, but not drawn here: ${other.join("; ")}`] : [];
}

// -- drawing ------------------------------------------------------------------------------------

let waiting = false;

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const card of cards.values()) {
      if (card.dirty && card.visible) {
        card.dirty = false;
        card.draw({ ...settings, resized: card.resized });
        card.resized = false;
      }
    }
  });
}

function refresh(resized = false) {
  const wanted = $("filter").value.toLowerCase();
  for (const card of cards.values()) {
    card.dirty = true;
    card.resized ||= resized;
    card.root.hidden = off.has(card.run) || !card.tag.toLowerCase().includes(wanted) || Boolean(card.isEmpty?.());
  }
  for (const { root, body, count } of groups.values()) {
    const shown = [...body.children].filter((card) => !card.hidden).length;
    root.hidden = shown === 0;
    root.dataset.cards = count.textContent = shown;
  }
  redraw();
}

function listRuns() {
  const begins = new Map();
  for (const tags of data.kinds.values()) {
    for (const runs of tags.values()) {
      for (const [name, { steps, times }] of runs) {
        const last = begins.get(name) ?? { step: 0, time: 0 };
        begins.set(name, { step: Math.max(last.step, steps.at(-1)), time: Math.max(last.time, times.at(-1)) });
      }
    }
  }
  const list = $("runs");
  while (list.children.length > data.runs.length) list.lastChild.remove();
  data.runs.forEach((name, n) => {
    if (list.children[n]?.dataset.run !== name) {
      const box = element("input", { type: "checkbox" });
      box.addEventListener("change", () => {
        off[box.checked ? "delete" : "add"](name);
        refresh();
      });
      const label = element("label", {}, box, element("span", { class: `swatch ${run(name).color}` }),
        element("span", { class: "name" }, run(name).label, element("small")));
      const item = element("li", {}, label);
      item.dataset.run = name;
      if (list.children[n]) list.children[n].replaceWith(item);
      else list.append(item);
    }
    const { step, time } = begins.get(name);
    list.children[n].querySelector("input").checked = !off.has(name);
    list.children[n].querySelector("small").textContent = `step ${step}, ${duration(time - data.begins.get(name))}`;
  });
}

function seen({ changed, fresh }) {
  if (fresh) {
    for (const { root } of groups.values()) root.remove();
    cards.clear();
    groups.clear();
    watcher.disconnect();
  }
  if (changed) {
    const known = new Set(groups.keys());
    const notes = placeAll();
    for (const [name, { root, body }] of groups) {
      if (!known.has(name) && body.children.length > OPEN) root.open = false;
    }
    listRuns();
    refresh();
    $("problems").dataset.notes = notes.join("\n");
  }
  const notes = ($("problems").dataset.notes ?? "").split("\n").filter(Boolean);
  $("problems").replaceChildren(...[...notes, ...data.problems].map((text) => element("li", {}, text)));
  $("empty").hidden = data.count > 0;
  $("folder").textContent = data.folder;
  $("status").className = "live";
  const age = data.newest ? `, the newest ${duration(Math.max(0, Date.now() / 1000 - data.newest))} old` : "";
  $("status").textContent = `${data.count} records${age}`;
}

function lost(error) {
  $("status").className = "lost";
  $("status").textContent = `no answer (${error.message}); trying again`;
}

// -- settings -----------------------------------------------------------------------------------

const every = (ids, kind, act) => ids.forEach((id) => $(id).addEventListener(kind, act));
every(["smoothing", "axis", "log", "filter"], "input", () => {
  settings.smoothing = $("smoothing").valueAsNumber;
  settings.log = $("log").checked;
  settings.axis = $("axis").value;
  $("smoothing-value").textContent = settings.smoothing;
  refresh();
});
every(["all", "none"], "click", (event) => {
  off.clear();
  if (event.target.id === "none") data.runs.forEach((name) => off.add(name));
  listRuns();
  refresh();
});
const theme = document.documentElement.dataset;
theme.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
$("theme").addEventListener("click", () => (theme.theme = theme.theme === "dark" ? "light" : "dark"));
addEventListener("resize", () => refresh(true));

follow(seen, lost);
