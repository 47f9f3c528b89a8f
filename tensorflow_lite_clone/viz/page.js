// Drawing and everything that answers to the reader. Words of the graph enter the page as text only.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const data = JSON.parse($("graph").textContent);
const graph = {
  nodes: new Map(data.nodes.map((node) => [node.key, node])),
  groups: new Map(data.groups.map((group) => [group.key, group])),
  edges: data.edges,
};
const open = new Set();
const drawn = new Map(); // key -> its element
let selected = null, layout = null, colors = data.colors, view = { x: 0, y: 0, scale: 1 };

// -- what is known of a box ------------------------------------------------------------------

const members = new Map(data.groups.map((group) => [group.key, []])); // group -> all nodes below
for (const node of data.nodes)
  for (let group = node.group; group; group = graph.groups.get(group).parent)
    members.get(group).push(node);

const level = (key) => (key ? 1 + level(graph.groups.get(key).parent) : 0);
const number = (value) => ({ nan: NaN, inf: Infinity })[value] ?? value; // JSON has neither
const shape = (sizes) => (sizes ? sizes.join(" x ") || "scalar" : "");
const tensor = (node) =>
  [shape(node.shape), node.dtype, node.device === "cpu" ? "" : node.device].filter(Boolean).join("  ");
const name = (key) => (graph.nodes.has(key) ? graph.nodes.get(key).label : graph.groups.get(key).title);

function short(value, steps) {
  const [factor, unit] = steps.find(([factor]) => Math.abs(value) >= factor) || steps[steps.length - 1];
  return `${Number((value / factor).toPrecision(3))} ${unit}`;
}
const words = {
  time: (value) => short(value, [[1e6, "s"], [1e3, "ms"], [1, "µs"]]),
  memory: (value) => short(value, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]),
  gradient: (value) =>
    `|grad| ${Number.isFinite(value) ? Number(value.toPrecision(3)) : value > 0 ? "inf" : "nan"}`,
};

// Of a node, or of all nodes in a group: sums, for gradients the largest.
function measure(key, what) {
  const nodes = graph.nodes.has(key) ? [graph.nodes.get(key)] : members.get(key);
  const values = nodes.map((node) => number(node[what])).filter((value) => value !== undefined);
  if (!values.length) return undefined;
  if (what !== "gradient") return values.reduce((a, b) => a + b, 0);
  return values.find(Number.isNaN) ?? values.reduce((a, b) => Math.max(a, b));
}
function isBroken(key) {
  const gradient = measure(key, "gradient");
  const nodes = graph.nodes.has(key) ? [graph.nodes.get(key)] : members.get(key);
  return (gradient !== undefined && !Number.isFinite(gradient))
    || nodes.some((node) => node.notes && node.notes.overwritten);
}
function lines(key) {
  const group = graph.groups.get(key), node = graph.nodes.get(key);
  const found = [group ? `+ ${group.title}` : node.label];
  if (group) {
    const parameters = members.get(key).reduce((sum, each) => sum + (each.parameters || 0), 0);
    if (parameters) found.push(`${parameters.toLocaleString("en")} parameters`);
  } else if (tensor(node)) found.push(tensor(node));
  if (node && node.kind === "module" && node.parameters)
    found.push(`${node.parameters.toLocaleString("en")} parameters`);
  for (const what of ["time", "memory", "gradient"]) {
    const value = what === colors || what === "gradient" ? measure(key, what) : undefined;
    if (value !== undefined) found.push(words[what](value));
  }
  return found;
}

// -- drawing ---------------------------------------------------------------------------------

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();
function width(line, font) {
  const key = font + line;
  if (!widths.has(key)) {
    pen.font = font;
    widths.set(key, pen.measureText(line).width);
  }
  return widths.get(key);
}
const size = (key) => {
  if (open.has(key)) return [width(graph.groups.get(key).title, "600 12px system-ui") + 28, 0];
  const all = lines(key);
  const wide = Math.max(...all.map((line, n) => width(line, n ? "11px system-ui" : "12px system-ui")));
  return [Math.max(wide + 20, 40), 10 + 15 * all.length];
};

function draw() {
  layout = new Layout(graph, open, size);
  drawn.clear();
  const most = Math.max(0, ...[...layout.chains.keys()].map((key) => measure(key, colors))
    .filter(Number.isFinite));
  const boxes = [], paths = [];
  const opened = [...layout.scopes.keys()].filter(Boolean).sort((a, b) => level(a) - level(b));
  for (const key of layout.chains.keys()) boxes.push(box(key, most));
  for (const edge of layout.edges.values())
    if (edge.kind !== "order") {
      const path = svg("path", { d: layout.path(edge), class: edge.kind });
      Object.assign(edge, { path });
      paths.push(path);
    }
  $("canvas").replaceChildren(...opened.map(frame), ...paths, ...opened.map(title), ...boxes);
  mark();
}

function frame(key) {
  const place = layout.boxes.get(key), repeated = graph.groups.get(key).repeats > 1;
  const made = svg("g", { class: repeated ? "frame repeated" : "frame" },
    svg("rect", { x: place.x, y: place.y, width: place.w, height: place.h, rx: 8 }));
  drawn.set(key, made);
  return made;
}

function title(key) {
  const place = layout.boxes.get(key);
  const made = svg("text", { x: place.x + 10, y: place.y + 16, class: "title", tabindex: 0,
    role: "button" }, `− ${graph.groups.get(key).title}`);
  act(made, () => toggle(key));
  return made;
}

function box(key, most) {
  const place = layout.boxes.get(key), node = graph.nodes.get(key), value = measure(key, colors);
  const kinds = ["node", node ? node.kind : "module"];
  if (node && node.view) kinds.push("view");
  if (value !== undefined && Number.isFinite(value)) kinds.push("heat");
  if (isBroken(key)) kinds.push("broken");
  const made = svg("g", { class: kinds.join(" "), tabindex: 0, role: "button" },
    svg("rect", { x: place.x, y: place.y, width: place.w, height: place.h,
      rx: node && node.kind === "op" ? 9 : 2 }));
  made.style.setProperty("--share", `${most > 0 ? (100 * Math.max(value, 0)) / most : 0}%`);
  lines(key).forEach((line, n) => made.append(svg("text", { x: place.x + place.w / 2,
    y: place.y + 17 + 15 * n, "text-anchor": "middle", class: n ? "second" : "first" }, line)));
  act(made, () => (node ? select(key) : toggle(key)));
  drawn.set(key, made);
  return made;
}

function act(element, action) {
  element.addEventListener("click", action);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      action();
    }
  });
}

// -- opening, choosing, finding -----------------------------------------------------------------

// Open or close a group; what is there stays where it is on the screen.
function toggle(key) {
  const before = layout.boxes.get(key);
  if (!open.delete(key)) open.add(key);
  draw();
  const after = layout.boxes.get(key);
  if (before && after) {
    view.x += (middle(before) - middle(after)) * view.scale;
    view.y += (before.y - after.y) * view.scale;
  }
  look();
  select(key);
}

function select(key) {
  selected = key;
  mark();
  describe(key);
}

function mark() {
  for (const element of $("canvas").querySelectorAll(".selected, .touched"))
    element.classList.remove("selected", "touched");
  if (drawn.has(selected)) drawn.get(selected).classList.add("selected");
  for (const edge of layout.edges.values())
    if (edge.path && (edge.source === selected || edge.target === selected))
      edge.path.classList.add("touched");
}

// Show a node or group wherever it lies: open what it is in, go there and select it.
function reveal(key) {
  let group = graph.nodes.has(key) ? graph.nodes.get(key).group : graph.groups.get(key).parent;
  let changed = false;
  for (; group; group = graph.groups.get(group).parent)
    if (!open.has(group)) {
      open.add(group);
      changed = true;
    }
  if (changed) draw();
  const place = layout.boxes.get(key), room = $("picture").getBoundingClientRect();
  view.scale = Math.max(view.scale, 0.8);
  view.x = room.width / 2 - middle(place) * view.scale;
  view.y = room.height / 2 - (place.y + place.h / 2) * view.scale;
  look();
  select(key);
}

function find(text) {
  const wanted = text.trim().toLowerCase();
  const says = (thing) =>
    [thing.label, thing.kind, shape(thing.shape), ...Object.values(thing.notes || {})]
      .some((word) => word && word.toLowerCase().includes(wanted));
  return wanted ? [...data.groups, ...data.nodes].filter(says) : [];
}

function search() {
  const found = find($("search").value).slice(0, 50);
  $("found").replaceChildren(...found.map((thing) => {
    const item = element("li", thing.title || thing.label);
    item.append(element("small", [where(thing), tensor(thing)].filter(Boolean).join("  ")));
    item.addEventListener("click", () => {
      $("found").hidden = true;
      reveal(thing.key);
    });
    return item;
  }));
  $("found").hidden = !found.length;
}
const where = (thing) => {
  const outer = thing.parent ?? thing.group;
  return outer ? outer.replace(/^\//, "in ") : "";
};

// -- details -----------------------------------------------------------------------------------

function element(tag, text = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
function link(key) {
  const made = element("a", name(key));
  made.tabIndex = 0;
  act(made, () => reveal(key));
  const item = element("li");
  item.append(made);
  return item;
}
function list(title, keys) {
  if (!keys.length) return [];
  const made = element("ul");
  made.append(...keys.slice(0, 200).map(link));
  return [element("h3", title), made];
}

function rows(key) {
  const node = graph.nodes.get(key), group = graph.groups.get(key);
  const nodes = node ? [node] : members.get(key);
  const parameters = nodes.reduce((sum, each) => sum + (each.parameters || 0), 0);
  const found = [["kind", node ? node.kind : group.kind]];
  if (node)
    found.push(["shape", shape(node.shape)], ["dtype", node.dtype], ["device", node.device],
      ["bytes", node.size ? words.memory(node.size) : ""]);
  else if (group.repeats > 1) found.push(["repeats", `${group.repeats} in a row, drawn once`]);
  for (const what of ["time", "memory", "gradient"]) {
    const value = measure(key, what);
    if (value !== undefined) found.push([what, words[what](value)]);
  }
  if (parameters) found.push(["parameters", parameters.toLocaleString("en")]);
  if (node && node.view) found.push(["view", "shares the memory of its input"]);
  if (node && node.inplace) found.push(["in place", "writes into the memory of its input"]);
  if (node && node.sequence >= 0) found.push(["sequence", String(node.sequence)]);
  return [...found, ...Object.entries((node || group).notes || {})].filter((row) => row[1]);
}

function describe(key) {
  const table = element("dl");
  for (const [word, text] of rows(key)) table.append(element("dt", word), element("dd", text));
  const node = graph.nodes.get(key), inside = new Set((members.get(key) || []).map((n) => n.key));
  inside.add(key);
  const ends = (from, to) => [...new Set(graph.edges
    .filter((edge) => edge.kind !== "order" && inside.has(edge[to]) && !inside.has(edge[from]))
    .map((edge) => edge[from]))];
  const sources = ends("source", "target");
  const parameters = (node ? sources : [...inside])
    .filter((other) => ["parameter", "buffer"].includes(graph.nodes.get(other)?.kind));
  const outer = node ? node.group : graph.groups.get(key).parent;
  $("details").replaceChildren(
    element("h2", name(key)), table,
    ...list("In", outer ? [outer] : []),
    ...list("Parameters and buffers", parameters),
    ...list("Inputs", sources.filter((other) => !parameters.includes(other))),
    ...list("Outputs", ends("target", "source")));
}

function legend() {
  const made = element("div");
  const kinds = new Set(data.nodes.map((node) => node.kind));
  if (data.groups.length) kinds.add("module");
  made.append(element("h2", data.title), element("p", "Click a box for details, a module or its "
    + "title to open or close it. Drag to move, turn the wheel to zoom."));
  for (const kind of kinds) {
    const line = element("div"), swatch = element("span");
    swatch.className = "swatch";
    swatch.style.background = `var(--${kind})`;
    line.append(swatch, kind === "op" ? "operation" : kind);
    made.append(line);
  }
  const used = new Set(data.edges.map((edge) => edge.kind));
  if (used.has("view")) made.append(element("p", "Dashed: shares the memory of what it reads."));
  if (used.has("inplace")) made.append(element("p", "Red arrows: written in place."));
  if (used.has("next")) made.append(element("p", "Dotted arrows: read by the next repeat."));
  if (data.groups.some((group) => group.repeats > 1))
    made.append(element("p", "What repeats is drawn once; its numbers are those of all repeats."));
  $("details").replaceChildren(made);
}

// -- zoom and pan ------------------------------------------------------------------------------

function look() {
  $("canvas").setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`);
}
function fit() {
  const room = $("picture").getBoundingClientRect();
  const scale = Math.min(room.width / (layout.width + 40), room.height / (layout.height + 40), 1.2);
  view = { scale: Math.max(scale, 0.02), x: 0, y: 20 };
  view.x = (room.width - layout.width * view.scale) / 2;
  view.y = Math.max((room.height - layout.height * view.scale) / 2, 10);
  look();
}
function zoom(factor, x, y) {
  const scale = Math.min(Math.max(view.scale * factor, 0.02), 8), by = scale / view.scale;
  view = { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
  look();
}
function zoomMiddle(factor) {
  const room = $("picture").getBoundingClientRect();
  zoom(factor, room.width / 2, room.height / 2);
}

$("picture").addEventListener("wheel", (event) => {
  event.preventDefault();
  const room = $("picture").getBoundingClientRect();
  zoom(Math.exp(-event.deltaY / 400), event.clientX - room.left, event.clientY - room.top);
}, { passive: false });
$("picture").addEventListener("pointermove", (event) => {
  if (event.buttons !== 1) return;
  view.x += event.movementX;
  view.y += event.movementY;
  look();
});

// -- start -------------------------------------------------------------------------------------

function openAll(depth) {
  open.clear();
  for (const key of graph.groups.keys()) if (level(key) <= depth) open.add(key);
  draw();
  fit();
}
const possible = ["kind", ...["time", "memory", "gradient"]
  .filter((what) => data.nodes.some((node) => node[what] !== undefined))];
for (const what of possible) $("colors").append(new Option(what, what, what === colors, what === colors));
$("colors").addEventListener("change", () => {
  colors = $("colors").value;
  draw();
});
$("open-all").addEventListener("click", () => openAll(Infinity));
$("close-all").addEventListener("click", () => openAll(0));
$("fit").addEventListener("click", fit);
$("larger").addEventListener("click", () => zoomMiddle(1.4));
$("smaller").addEventListener("click", () => zoomMiddle(1 / 1.4));
$("search").addEventListener("input", search);
$("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && $("found").firstChild) $("found").firstChild.click();
  if (event.key === "Escape") $("found").hidden = true;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== $("search")) {
    event.preventDefault();
    $("search").focus();
  }
});
openAll(data.depth);
if (view.scale < 0.7) {  // too small to read: begin at the top
  const room = $("picture").getBoundingClientRect(), [first] = layout.chains.keys();
  view = { scale: 0.8, x: room.width / 2 - middle(layout.boxes.get(first)) * 0.8, y: 12 };
  look();
}
legend();
