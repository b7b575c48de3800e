"use strict";
// What the page knows, and how it is read. Nothing here touches the page.
const data = JSON.parse(document.getElementById("data").textContent);

// Numbers from letters: five bits each, the sixth says that more follow.
function reader(text) {
  const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  let at = 0;
  return () => {
    for (let number = 0, shift = 0; ; shift += 5) {
      const bits = letters.indexOf(text[at++]);
      number |= (bits % 32) << shift;
      if (bits < 32) return number;
    }
  };
}

// Where ranks sit: seats in order, the node of each rank, and the boxes that are drawn, outer ones first.
function seating(shape) {
  if (shape.seats) return shape;
  shape.seats = [];
  shape.node = [];
  shape.boxes = [];
  const visit = (region, depth, node) => {
    if (!Array.isArray(region)) {
      shape.node[region] = node;
      shape.seats.push(region);
      return;
    }
    const box = { depth, node, first: shape.seats.length };
    if (depth > 0) shape.boxes.push(box);
    region.forEach((inner, index) => visit(inner, depth + 1, depth === 0 && Array.isArray(inner) ? index : node));
    box.end = shape.seats.length;
  };
  visit(shape.regions, 0, 0);
  shape.seatOf = [];
  shape.seats.forEach((rank, seat) => shape.seatOf[rank] = seat);
  return shape;
}

// A score with its letters read: the messages of each step, and the changes of each cell.
function unpacked(shape, score) {
  if (score.stepList) return score;
  seating(shape);
  const next = reader(score.messages);
  score.stepList = Array.from({ length: score.steps }, () => {
    let from = 0;
    return Array.from({ length: next() }, () => {
      from += next();
      const to = next(), weight = next();
      return { from, to, weight, far: shape.node[from] !== shape.node[to] };
    });
  });
  score.heaviest = Math.max(1, ...score.stepList.flat().map(message => message.weight));
  const cell = reader(score.cells);
  const one = (rank, row) => data.reduces ? combined(cell, score.sets, shape.ranks, rank) : moved(cell, row);
  score.cellList = Array.from({ length: shape.ranks }, (_, rank) =>
    Array.from({ length: score.rows }, (_, row) => one(rank, row)));
  score.tallies = tallies(shape, score);
  return score;
}

// A block that comes once.
function moved(next, row) {
  const code = next();
  if (code === 0) return [];
  return [{ step: Math.floor((code - 1) / 3), how: (code - 1) % 3, part: 1, labels: [String(row)] }];
}

// Contributions that become more; a rank begins with its own.
function combined(next, sets, ranks, rank) {
  const changes = [{ step: 0, how: 0, part: 1 / ranks, labels: [String(rank)] }];
  let step = 0;
  for (let count = next(); count > 0; count--) {
    const code = next(), runs = sets[next()];
    step += Math.floor(code / 3);
    changes.push({ step, how: code % 3, part: held(runs) / ranks, labels: [words(runs), "x" + held(runs)] });
  }
  return changes;
}

function held(runs) {
  let count = 0;
  for (let at = 0; at < runs.length; at += 2) count += runs[at + 1] - runs[at];
  return count;
}

// As `allhands explain` writes them: 3, 0-3, or x5 where there are more than two runs.
function words(runs) {
  if (runs.length > 4) return "x" + held(runs);
  const parts = [];
  for (let at = 0; at < runs.length; at += 2) {
    parts.push(runs[at + 1] === runs[at] + 1 ? runs[at] : runs[at] + "-" + (runs[at + 1] - 1));
  }
  return parts.join(",");
}

// What a cell holds after a step: its last change until then.
function content(changes, step) {
  let found = null;
  for (const change of changes) if (change.step <= step) found = change;
  return found;
}

// Whether a cell is part of a rank's result.
function wanted(shape, score, rank, row) {
  if (shape.sources) return shape.sources[rank].includes(row);
  if (/^(reduce_)?scatter/.test(data.collective)) return rank === Math.floor(row / score.pieces);
  if (data.collective === "exscan") return rank > 0;
  return !/^(reduce|gatherv?)$/.test(data.collective) || rank === shape.root;
}

// Counts after each step: near and far messages with their weight, those of the busiest sender, results that are there.
function tallies(shape, score) {
  const nothing = () => ({ messages: 0, weight: 0 });
  const all = { near: nothing(), far: nothing() };
  const sent = shape.seats.map(() => ({ near: nothing(), far: nothing() }));
  const most = (kind, what) => Math.max(...sent.map(one => one[kind][what]));
  const both = make => ({ near: make("near"), far: make("far") });
  const list = [];
  for (let step = 0; step <= score.steps; step++) {
    for (const message of step > 0 ? score.stepList[step - 1] : []) {
      const kind = message.far ? "far" : "near";
      for (const count of [all[kind], sent[message.from][kind]]) {
        count.messages += 1;
        count.weight += message.weight;
      }
    }
    list.push({
      all: both(kind => ({ ...all[kind] })),
      busiest: both(kind => ({ messages: most(kind, "messages"), weight: most(kind, "weight") })),
      ...filled(shape, score, step),
    });
  }
  return list;
}

function filled(shape, score, step) {
  let full = 0, results = 0;
  score.cellList.forEach((cells, rank) => cells.forEach((changes, row) => {
    if (!wanted(shape, score, rank, row)) return;
    results += 1;
    const now = content(changes, step);
    if (now && now.part > 1 - 1e-9) full += 1;
  }));
  return { full, results };
}

// Bytes of so many blocks, or units of the counts, as the command counts them.
function bytesOf(score, weight, size) {
  return Math.ceil(size * weight / (data.cut ? Math.max(1, score.blocks) : score.pieces));
}

function sizeWords(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 4) { bytes /= 1024; unit += 1; }
  return (Number.isInteger(bytes) ? bytes : bytes.toFixed(1)) + " " + units[unit];
}

function timeWords(us) {
  if (us === null || us === undefined) return "unknown";
  const [value, unit] = us >= 1e6 ? [us / 1e6, "s"] : us >= 1e3 ? [us / 1e3, "ms"] : [us, "µs"];
  return (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)) + " " + unit;
}
