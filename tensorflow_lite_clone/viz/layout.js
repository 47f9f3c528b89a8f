"use strict";
// Places for boxes: what is visible in layers from top to bottom, group by group from the inside.

const GAP = { x: 18, y: 30, frame: 12, title: 24 };
const LONGEST = 30; // edges over more layers than this go straight

class Layout {
  // `measure(key)` gives the [width, height] of a node or closed group.
  constructor(graph, open, measure) {
    this.graph = graph;
    this.open = open;
    this.measure = measure;
    this.boxes = new Map(); // key -> {x, y, w, h}, absolute at the end
    this.scopes = new Map(); // group -> {items, edges, rows, ...}
    this.order = new Map(); // item -> when its first node was made
    this.chains = new Map(); // visible key -> the groups it lies in, from the outermost, and itself
    this.width = this.height = 0;
    this.collect();
    if (this.graph.nodes.size) {
      [this.width, this.height] = this.place("");
      this.move("", 0, 0);
    }
  }

  collect() {
    this.scope("");
    this.shown = new Map(); // node -> what is drawn for it
    for (const node of this.graph.nodes.values()) {
      const chain = [];
      for (let group = node.group || ""; group; group = this.graph.groups.get(group).parent)
        chain.unshift(group);
      const closed = chain.findIndex((group) => !this.open.has(group));
      const path = closed < 0 ? [...chain, node.key] : chain.slice(0, closed + 1);
      this.shown.set(node.key, path[path.length - 1]);
      this.chains.set(path[path.length - 1], path);
      path.forEach((item, depth) => {
        if (!this.order.has(item)) this.order.set(item, this.order.size);
        this.scope(depth ? path[depth - 1] : "").items.add(item);
      });
    }
    this.edges = new Map(); // visible edges, each once
    for (const edge of this.graph.edges) {
      const source = this.shown.get(edge.source), target = this.shown.get(edge.target);
      const key = JSON.stringify([source, target]);
      if (source === target || this.edges.has(key)) continue;
      const legs = this.legs(source, target, edge.kind === "order");
      this.edges.set(key, { source, target, kind: edge.kind, legs });
    }
  }

  scope(key) {
    if (!this.scopes.has(key))
      this.scopes.set(key, { items: new Set(), edges: new Map(), ports: new Map() });
    return this.scopes.get(key);
  }

  // The way of an edge: out of the groups of its source, across, into those of its target. In each
  // group it ends at a port on the rim. Backward edges have no way; they are drawn beside. Edges
  // that only say what comes first are not drawn and need no ports.
  legs(source, target, plain) {
    const from = this.chains.get(source), to = this.chains.get(target);
    let common = 0;
    while (from[common] === to[common]) common++;
    if (this.order.get(from[common]) > this.order.get(to[common])) return null;
    if (plain) return [this.leg(common ? from[common - 1] : "", from[common], to[common])];
    const legs = [];
    for (let depth = from.length - 1; depth > common; depth--)
      legs.push(this.leg(from[depth - 1], from[depth], this.port(from[depth - 1], source, "out")));
    legs.push(this.leg(common ? from[common - 1] : "", from[common], to[common]));
    for (let depth = common + 1; depth < to.length; depth++)
      legs.push(this.leg(to[depth - 1], this.port(to[depth - 1], target, "in"), to[depth]));
    return legs;
  }

  leg(scope, from, to) {
    const edges = this.scope(scope).edges, key = JSON.stringify([from, to]);
    if (!edges.has(key)) edges.set(key, { scope, from, to, bends: [] });
    return edges.get(key);
  }

  port(scope, end, side) {
    const key = JSON.stringify([side, scope, end]);
    this.scope(scope).ports.set(key, side);
    this.order.set(key, side === "in" ? -1 : Infinity);
    return key;
  }

  // Sizes and relative places of all that lies in a group; returns the group's size.
  place(key) {
    const scope = this.scopes.get(key);
    for (const item of scope.items) {
      const [w, h] = this.scopes.has(item) ? this.place(item) : this.measure(item);
      this.boxes.set(item, { w, h });
    }
    for (const port of scope.ports.keys()) this.boxes.set(port, { w: 6, h: 0, point: true });
    const rows = this.rows(scope);
    this.sort(rows, scope);
    this.straighten(rows, scope);
    let y = key ? GAP.title : 0;
    for (const row of rows) {
      const height = Math.max(...row.map((item) => this.boxes.get(item).h));
      for (const item of row) {
        const box = this.boxes.get(item);
        box.y = y + (height - box.h) / 2;
      }
      y += height + (height ? GAP.y : GAP.y / 3);
    }
    const all = rows.flat().map((item) => this.boxes.get(item));
    const left = Math.min(...all.map((box) => box.x)) - GAP.frame;
    for (const box of all) box.x -= left;
    const name = key ? this.measure(key)[0] : 0;
    scope.inside = all;
    const width = Math.max(...all.map((box) => box.x + box.w)) + GAP.frame;
    const shift = Math.max(0, name - width) / 2; // narrower than its title
    for (const box of all) box.x += shift;
    return [width + 2 * shift, y - GAP.y / 3 + (key ? 0 : GAP.y)];
  }

  // Each item below all that it reads (longest path); what reads nothing, right above its reader.
  rows(scope) {
    const items = [...scope.items, ...scope.ports.keys()];
    items.sort((a, b) => this.order.get(a) - this.order.get(b) || 0);
    scope.above = new Map(items.map((item) => [item, []]));
    scope.below = new Map(items.map((item) => [item, []]));
    for (const { from, to } of scope.edges.values()) {
      scope.below.get(from).push(to);
      scope.above.get(to).push(from);
    }
    const rank = new Map();
    let last = 0;
    for (const item of items) {
      const ranks = scope.above.get(item).map((other) => rank.get(other) + 1);
      const start = scope.ports.size && !scope.ports.has(item) ? 1 : 0;
      rank.set(item, ranks.reduce((a, b) => Math.max(a, b), start));
      last = Math.max(last, rank.get(item));
    }
    for (const item of items) {
      const below = scope.below.get(item);
      if (scope.ports.get(item) === "out") rank.set(item, last);
      else if (!scope.above.get(item).length && below.length && !scope.ports.has(item))
        rank.set(item, below.reduce((a, b) => Math.min(a, rank.get(b) - 1), Infinity));
    }
    const rows = Array.from({ length: last + 1 }, () => []);
    for (const item of items) rows[rank.get(item)].push(item);
    let bends = 0;
    for (const edge of scope.edges.values()) {
      const start = rank.get(edge.from), end = rank.get(edge.to);
      if (end - start > LONGEST || end - start < 2) continue;
      let before = edge.from;
      for (let layer = start + 1; layer < end; layer++) {
        const bend = `bend ${edge.scope} ${bends++}`;
        this.boxes.set(bend, { w: 6, h: 0, point: true });
        edge.bends.push(bend);
        rows[layer].push(bend);
        this.join(scope, before, bend, edge.to);
        before = bend;
      }
    }
    return rows.filter((row) => row.length);
  }

  // Put `bend` on the edge from `before` to `to`.
  join(scope, before, bend, to) {
    const below = scope.below.get(before), above = scope.above.get(to);
    below[below.indexOf(to)] = bend;
    above[above.indexOf(before)] = bend;
    scope.above.set(bend, [before]);
    scope.below.set(bend, [to]);
  }

  // Few crossings: each row in the order of the means of its neighbours, down and up again.
  sort(rows, scope) {
    const number = (row) => row.forEach((item, place) => (this.boxes.get(item).place = place));
    rows.forEach(number);
    for (let sweep = 0; sweep < 6; sweep++) {
      const down = sweep % 2 === 0;
      const order = down ? rows.slice(1) : rows.slice(0, -1).reverse();
      for (const row of order) {
        for (const item of row) {
          const box = this.boxes.get(item);
          const others = (down ? scope.above : scope.below).get(item);
          box.want = others.length ? mean(others.map((o) => this.boxes.get(o).place)) : box.place;
        }
        row.sort((a, b) => this.boxes.get(a).want - this.boxes.get(b).want);
        number(row);
      }
    }
  }

  // Near the middle of the neighbours, in the row's order and without overlaps.
  straighten(rows, scope) {
    for (const row of rows) this.pack(row, () => 0);
    for (let sweep = 0; sweep < 8; sweep++) {
      const side = [scope.above, scope.below][sweep % 2];
      for (const row of sweep % 2 ? [...rows].reverse() : rows)
        this.pack(row, (item, box) => {
          const others = sweep > 5 ? [...scope.above.get(item), ...scope.below.get(item)] : side.get(item);
          return others.length ? mean(others.map((o) => middle(this.boxes.get(o)))) : middle(box);
        });
    }
  }

  pack(row, wish) {
    const boxes = row.map((item) => this.boxes.get(item));
    const wanted = row.map((item, n) => wish(item, boxes[n]) - boxes[n].w / 2);
    const left = [], right = [];
    for (let n = 0; n < row.length; n++)
      left[n] = n ? Math.max(wanted[n], left[n - 1] + boxes[n - 1].w + GAP.x) : wanted[n];
    for (let n = row.length - 1; n >= 0; n--)
      right[n] = n + 1 < row.length ? Math.min(wanted[n], right[n + 1] - boxes[n].w - GAP.x) : wanted[n];
    boxes.forEach((box, n) => (box.x = (left[n] + right[n]) / 2));
  }

  // From places within the group to places in the picture.
  move(key, x, y) {
    for (const box of this.scopes.get(key).inside) {
      box.x += x;
      box.y += y;
    }
    for (const item of this.scopes.get(key).items)
      if (this.scopes.has(item)) this.move(item, this.boxes.get(item).x, this.boxes.get(item).y);
  }

  // An edge as the `d` of a path.
  path(edge) {
    const source = this.boxes.get(edge.source), target = this.boxes.get(edge.target);
    if (!edge.legs) {
      const x1 = source.x + source.w, y1 = source.y + source.h / 2;
      const x2 = target.x + target.w, y2 = target.y + target.h / 2;
      const far = Math.max(x1, x2) + 40;
      return `M${x1},${y1} C${far},${y1} ${far},${y2} ${x2},${y2}`;
    }
    const points = [[middle(source), source.y + source.h]];
    for (const leg of edge.legs)
      for (const stop of [leg.from, ...leg.bends, leg.to]) {
        const box = this.boxes.get(stop);
        if (box.point) points.push([middle(box), box.y]);
      }
    points.push([middle(target), target.y]);
    let d = `M${points[0]}`;
    for (let n = 1; n < points.length; n++) {
      const [x1, y1] = points[n - 1], [x2, y2] = points[n], half = (y1 + y2) / 2;
      d += x1 === x2 ? ` L${x2},${y2}` : ` C${x1},${half} ${x2},${half} ${x2},${y2}`;
    }
    return d;
  }
}

const middle = (box) => box.x + box.w / 2;
const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;
