// The drawing of one schedule: messages as arcs over the ranks, below them a column of cells for every rank.
const MARGIN = 10;

// Where everything is, for a width in pixels.
function places(shape, score, width) {
  seating(shape);
  const gutter = score.rows > 1 ? 26 : 4;
  const room = width - 2 * MARGIN - gutter;
  // A border between regions takes a part of a column: of outer regions more.
  const starts = shape.boxes.filter(box => box.first > 0);
  const gapAt = seat => Math.max(0, ...starts.filter(box => box.first === seat).map(box => box.depth === 1 ? 0.55 : 0.25));
  const columns = shape.ranks + shape.seats.reduce((sum, _, seat) => sum + gapAt(seat), 0);
  const column = Math.min(76, room / columns);
  const x = [];
  let at = MARGIN + gutter + (room - column * columns) / 2;
  shape.seats.forEach((_, seat) => {
    at += gapAt(seat) * column;
    x.push(at + column / 2);
    at += column;
  });
  // Messages and cells together fit a screen, with the counts below them.
  const screen = Math.max(560, window.innerHeight);
  const arcs = Math.max(84, Math.min(190, width * 0.26, screen * 0.17));
  const row = score.rows === 0 ? 0 : Math.max(3.2, Math.min(column, score.rows === 1 ? 64 : 30, screen * 0.32 / score.rows));
  const numbered = column >= (shape.ranks > 10 ? 17 : 12);
  const names = 22;
  const base = MARGIN + arcs;
  const cells = base + names + 4;
  const bottom = cells + score.rows * row + 6;
  return { column, numbered, x, arcs, row, base, cells, bottom, height: bottom + 24, width };
}

// Colours from the style sheet, so that light and dark are decided there.
function inks() {
  const style = getComputedStyle(document.documentElement);
  const ink = name => style.getPropertyValue("--" + name).trim();
  return {
    text: ink("ink"), soft: ink("soft"), line: ink("line"), box: ink("box"), inner: ink("inner"), empty: ink("empty"), spare: ink("spare"),
    how: [ink("own"), ink("near"), ink("far")], on: [ink("on-own"), ink("on-near"), ink("on-far")], card: ink("card"),
  };
}

// Draws a score at a time: 2.5 is half-way through the third step.
function drawStage(canvas, shape, score, time) {
  const width = canvas.parentElement.clientWidth;
  // A page that is being taken away has no room for anything.
  if (width < 60) return;
  const at = places(shape, score, width);
  const density = window.devicePixelRatio || 1;
  canvas.style.height = at.height + "px";
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(at.height * density);
  const pen = canvas.getContext("2d");
  pen.scale(density, density);
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const ink = inks();
  const whole = Math.min(score.steps, Math.floor(time + 1e-9));
  const part = whole >= score.steps ? 0 : Math.max(0, time - whole);
  drawBoxes(pen, ink, shape, at);
  drawCells(pen, ink, shape, score, at, whole, part);
  drawArcs(pen, ink, shape, score, at, whole, part);
  drawRanks(pen, ink, shape, at);
}

function drawBoxes(pen, ink, shape, at) {
  const deepest = Math.max(1, ...shape.boxes.map(box => box.depth));
  for (const box of shape.boxes) {
    const inset = box.depth === 1 ? 4 : 1;
    const left = at.x[box.first] - at.column / 2 - Math.min(inset, at.column * 0.2);
    const right = at.x[box.end - 1] + at.column / 2 + Math.min(inset, at.column * 0.2);
    const top = at.base - (box.depth === 1 ? 14 : 11), bottom = at.bottom - (box.depth === 1 ? 0 : 3);
    pen.fillStyle = box.depth === 1 ? ink.box : ink.inner;
    pen.strokeStyle = ink.line;
    pen.beginPath();
    pen.roundRect(left, top, right - left, bottom - top, Math.min(8, at.column / 2));
    pen.fill();
    if (box.depth === 1 || deepest > 1) pen.stroke();
  }
  nameNodes(pen, ink, shape, at);
}

// In the longest of three forms that fits below every node.
function nameNodes(pen, ink, shape, at) {
  const nodes = shape.boxes.filter(box => box.depth === 1).map(box => {
    const ranks = shape.seats.slice(box.first, box.end), inOrder = ranks.every((rank, index) => rank === ranks[0] + index);
    const long = at.numbered || !inOrder ? null : `node ${box.node}: ${ranks[0]}–${ranks.at(-1)}`;
    const [left, right] = [at.x[box.first] - at.column / 2, at.x[box.end - 1] + at.column / 2];
    return { names: [long, "node " + box.node, "n" + box.node], middle: (left + right) / 2, width: right - left + 6 };
  });
  const fits = form => nodes.every(({ names, width }) => names[form] && pen.measureText(names[form]).width < width);
  const form = [0, 1, 2].find(fits);
  pen.fillStyle = ink.soft;
  if (form !== undefined) nodes.forEach(({ names, middle }) => pen.fillText(names[form], middle, at.bottom + 12));
}

function drawRanks(pen, ink, shape, at) {
  const size = Math.min(19, at.column - 1.5);
  const beside = at.numbered ? [] : numberedSeats(pen, shape, at);
  shape.seats.forEach((rank, seat) => {
    const special = data.rooted && rank === shape.root;
    pen.fillStyle = special ? ink.text : ink.card;
    pen.strokeStyle = ink.soft;
    pen.beginPath();
    pen.roundRect(at.x[seat] - size / 2, at.base - size / 2, size, size, size / 3.5);
    pen.fill();
    pen.stroke();
    pen.fillStyle = special && at.numbered ? ink.card : ink.text;
    if (at.numbered) pen.fillText(rank, at.x[seat], at.base + 0.5);
    if (beside.includes(seat)) pen.fillText(rank, at.x[seat], at.base + size / 2 + 9);
  });
}

// Where numbers do not fit into the ranks they stand below some: the first of every node, and as many more as there is room for.
function numberedSeats(pen, shape, at) {
  const wide = pen.measureText(String(shape.ranks - 1)).width + 5;
  const firsts = shape.boxes.filter(box => box.depth === 1).map(box => box.first);
  if (firsts.length === 0) firsts.push(0);
  const seats = [], free = (seat, end) => end - at.x[seat] >= wide;
  firsts.forEach((first, index) => {
    if (seats.length > 0 && at.x[first] - at.x[seats.at(-1)] < wide) return;
    const next = firsts[index + 1] ?? shape.seats.length, end = next < shape.seats.length ? at.x[next] : Infinity;
    const every = [1, 2, 4, 5, 8, 10, 16, 20, 32].find(every => every * at.column >= wide) ?? next - first;
    for (let seat = first; seat < next; seat += every) if (seat === first || free(seat, end)) seats.push(seat);
  });
  return seats;
}

// The seat at a place of the drawing, if there is one.
function seatAt(shape, score, width, x) {
  const at = places(shape, score, width);
  const seat = at.x.findIndex(middle => Math.abs(x - middle) <= at.column / 2);
  return seat < 0 ? null : seat;
}

// Rows stand in the order of the seats where a row is a rank's.
function rowOrder(shape, score) {
  return score.rows === shape.ranks ? shape.seats : Array.from({ length: score.rows }, (_, row) => row);
}

function drawCells(pen, ink, shape, score, at, whole, part) {
  const gap = at.row > 8 && at.column > 8 ? 1.5 : 0.4;
  const [width, height] = [at.column - gap, at.row - gap];
  // What is on its way comes in at the end of a step.
  const coming = Math.max(0, (part - 0.72) / 0.28);
  pen.font = Math.min(11, at.row * 0.62, at.column * 0.5) + "px system-ui, sans-serif";
  const labels = at.row >= 11 && at.column >= 14;
  const everyLine = at.row >= 9 ? 1 : [2, 4, 8, 16, 32].find(every => every * at.row >= 12) ?? score.rows;
  rowOrder(shape, score).forEach((row, line) => {
    const y = at.cells + line * at.row;
    shape.seats.forEach((rank, seat) => {
      const x = at.x[seat] - at.column / 2 + gap / 2;
      const changes = score.cellList[rank][row];
      const result = wanted(shape, score, rank, row);
      pen.globalAlpha = 1;
      pen.fillStyle = result ? ink.empty : ink.spare;
      pen.fillRect(x, y, width, height);
      const now = content(changes, whole);
      const next = coming > 0 ? content(changes, whole + 1) : now;
      const shown = next !== now ? next : now;
      if (!shown) return;
      const fresh = shown.step === whole || next !== now;
      const before = next !== now && now ? now.part : 0;
      const level = next !== now ? before + (next.part - before) * coming : shown.part;
      pen.fillStyle = ink.how[shown.how];
      pen.globalAlpha = (fresh || shown.how === 0 ? 1 : 0.7) * (result ? 1 : 0.62);
      if (data.reduces && at.row >= 13) {
        pen.fillRect(x, y + height * (1 - level), width, height * level);
      } else {
        pen.globalAlpha *= data.reduces ? Math.sqrt(level) : level;
        pen.fillRect(x, y, width, height);
      }
      pen.globalAlpha = 1;
      if (!labels || (next !== now && coming < 0.5)) return;
      const label = shown.labels.find(text => pen.measureText(text).width < width - 1);
      if (!label) return;
      pen.fillStyle = data.reduces && shown.part < 0.6 ? ink.text : ink.on[shown.how];
      pen.fillText(label, x + width / 2, y + height / 2 + 0.5);
    });
    if (score.rows > 1 && line % everyLine === 0) {
      pen.fillStyle = ink.soft;
      pen.font = "10px system-ui, sans-serif";
      pen.textAlign = "right";
      pen.fillText(row, at.x[0] - at.column / 2 - 8, y + Math.max(at.row / 2, 3));
      pen.textAlign = "center";
      pen.font = Math.min(11, at.row * 0.62, at.column * 0.5) + "px system-ui, sans-serif";
    }
  });
  pen.font = "11px system-ui, sans-serif";
}

// Between two steps the messages of the next are on their way; at the end of one its own are shown as they went.
function drawArcs(pen, ink, shape, score, at, whole, part) {
  const moving = part > 0;
  const messages = score.stepList[moving ? whole : whole - 1] ?? [];
  const progress = moving ? ease(Math.min(1, part / 0.8)) : 1;
  const crowd = Math.min(1, 0.45 + 14 / messages.length);
  for (const far of [false, true]) {
    for (const message of messages) {
      if (message.far === far) drawArc(pen, ink, shape, score, at, message, progress, moving ? crowd : crowd * 0.8);
    }
  }
  pen.globalAlpha = 1;
}

function ease(part) {
  return part * part * (3 - 2 * part);
}

function drawArc(pen, ink, shape, score, at, message, progress, alpha) {
  const [x1, x2] = [at.x[shape.seatOf[message.from]], at.x[shape.seatOf[message.to]]];
  const y = at.base - Math.min(10, at.column / 2);
  // Those to the left stay a little lower, so that both ways of an exchange are seen.
  const height = (14 + (at.arcs - 30) * Math.pow(Math.abs(x2 - x1) / at.width, 0.62)) * (x2 > x1 ? 1 : 0.86);
  const middle = { x: (x1 + x2) / 2, y: y - 2 * height };
  const mix = (a, b) => a + (b - a) * progress;
  const half = { x: mix(x1, middle.x), y: mix(y, middle.y) };
  const end = { x: mix(half.x, mix(middle.x, x2)), y: mix(half.y, mix(middle.y, y)) };
  pen.globalAlpha = alpha;
  pen.strokeStyle = pen.fillStyle = ink.how[message.far ? 2 : 1];
  pen.lineWidth = 1 + 2.4 * Math.sqrt(message.weight / score.heaviest);
  pen.beginPath();
  pen.moveTo(x1, y);
  pen.quadraticCurveTo(half.x, half.y, end.x, end.y);
  pen.stroke();
  pen.globalAlpha = Math.min(1, alpha + 0.2);
  const angle = Math.atan2(end.y - half.y, end.x - half.x), size = 4 + pen.lineWidth;
  pen.beginPath();
  pen.moveTo(end.x + Math.cos(angle) * 2, end.y + Math.sin(angle) * 2);
  for (const side of [2.6, -2.6]) pen.lineTo(end.x + Math.cos(angle + side) * size, end.y + Math.sin(angle + side) * size);
  pen.fill();
  pen.lineWidth = 1;
}
