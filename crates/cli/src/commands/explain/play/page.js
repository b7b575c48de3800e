// The controls: what is chosen, and what follows from it.
const find = id => document.getElementById(id);
const state = { shape: 0, size: data.size, time: 0, playing: false, sides: [null, null] };
const panels = ["a", "b"].map(makePanel);

const shapeNow = () => data.shapes[state.shape];
const scoresNow = () => state.sides.map(side => unpacked(shapeNow(), side));
const stepsNow = () => Math.max(...scoresNow().map(score => score.steps));

function makePanel(letter, index) {
  const panel = find("side").content.firstElementChild.cloneNode(true);
  panel.id = "side-" + letter;
  panel.querySelector(".badge").textContent = letter.toUpperCase();
  find("sides").append(panel);
  panel.querySelector(".algorithm").addEventListener("change", event => choose(index, event.target.value, null));
  panel.querySelector(".setting").addEventListener("change", event => {
    choose(index, state.sides[index].algorithm, event.target.value);
  });
  return panel;
}

// The score of a name and a setting on the shape; its default where the setting cannot serve, the first one where the name cannot.
function scoreOf(algorithm, setting) {
  const scores = shapeNow().scores;
  return scores.find(score => score.algorithm === algorithm && score.setting === setting)
    ?? scores.find(score => score.algorithm === algorithm) ?? scores[0];
}

function choose(index, algorithm, setting) {
  state.sides[index] = scoreOf(algorithm, setting);
  state.time = Math.min(state.time, stepsNow());
  show();
}

// The fastest at the size, as it is without settings, of another algorithm than one that is given.
function fastest(other) {
  const names = [...new Set(shapeNow().scores.map(score => score.algorithm))].filter(name => name !== other);
  const rated = names.map(name => scoreOf(name, ""));
  const us = score => score.us[state.size] ?? Infinity;
  return rated.reduce((best, score) => us(score) < us(best) ? score : best, rated[0] ?? shapeNow().scores[0]);
}

function changeShape(index) {
  state.shape = index;
  state.time = 0;
  state.playing = false;
  state.sides = state.sides.map(side => scoreOf(side.algorithm, side.setting));
  show();
}

// Everything but what moves.
function show() {
  const shape = shapeNow(), scores = scoresNow();
  panels.forEach((panel, index) => showPanel(panel, shape, scores[index]));
  find("shape").value = state.shape;
  find("size").value = state.size;
  find("size-name").textContent = data.sizes[state.size] === 0 ? "no data" : sizeWords(data.sizes[state.size]) + (data.cut ? " a vector" : " a block");
  find("position").max = stepsNow();
  showTimes(shape, scores);
  tickTo(state.time);
}

function options(select, values, name) {
  select.replaceChildren(...values.map((value, index) => new Option(name(value), value)));
}

function showPanel(panel, shape, score) {
  const [algorithm, setting] = [panel.querySelector(".algorithm"), panel.querySelector(".setting")];
  options(algorithm, [...new Set(shape.scores.map(one => one.algorithm))], name => name);
  algorithm.value = score.algorithm;
  const settings = shape.scores.filter(one => one.algorithm === score.algorithm).map(one => one.setting);
  options(setting, settings, name => name === "" ? "default" : name.replaceAll(":", ", "));
  setting.value = score.setting;
  setting.disabled = settings.length < 2;
  const source = data.sources.find(([name]) => name === score.algorithm)[1];
  const scratch = score.scratch > 0 ? ` · up to ${score.scratch} block${score.scratch === 1 ? "" : "s"} of scratch` : "";
  panel.querySelector(".time").textContent = score.us[state.size] === null ? "" : "≈ " + timeWords(score.us[state.size]);
  panel.querySelector(".source").textContent = source + scratch + (score.shares ? " · shared memory inside a node" : "");
}

function showTimes(shape, scores) {
  const times = scores.map(score => score.us[state.size]);
  const bound = shape.bounds[Number(scores.every(score => score.shares))][state.size];
  const longest = Math.max(1e-9, bound, ...times.filter(us => us !== null));
  const bar = (className, name, us) => {
    const row = document.createElement("div");
    row.className = "bar " + className;
    const [label, fill, value] = ["span", "i", "b"].map(tag => row.appendChild(document.createElement(tag)));
    label.textContent = label.title = name;
    fill.style.width = us === null ? 0 : 100 * us / longest + "%";
    value.textContent = timeWords(us);
    value.dataset.us = us;
    return row;
  };
  const name = score => score.setting ? score.algorithm + " " + score.setting.replaceAll(":", ", ") : score.algorithm;
  find("bars").replaceChildren(bar("a", name(scores[0]), times[0]), bar("b", name(scores[1]), times[1]), bar("bound", "lower bound", bound));
  find("verdict").textContent = verdict(scores, times, bound);
  drawChart(find("chart"), shape, scores, state.size);
}

function verdict(scores, times, bound) {
  const where = `On ${data.machine}, ${shapeNow().name}: `;
  if (times.includes(null)) return where + "one of the two has no estimate there.";
  const [quick, slow] = times[0] <= times[1] ? [0, 1] : [1, 0];
  const ratio = times[slow] / times[quick];
  const limit = bound > 0 ? `, and takes ${(times[quick] / bound).toFixed(1)} times the lower bound, which no algorithm can beat` : "";
  if (ratio < 1.005) return where + "both take the same time.";
  return where + `${"AB"[quick]} (${scores[quick].algorithm}) is ${ratio.toFixed(2)} times as fast as ${"AB"[slow]}` + limit + ".";
}

// What moves: the drawings, the counts, the slider.
function tickTo(time) {
  state.time = Math.max(0, Math.min(stepsNow(), time));
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const shown = still ? Math.floor(state.time) : state.time;
  scoresNow().forEach((score, index) => {
    const canvas = panels[index].querySelector("canvas");
    drawStage(canvas, shapeNow(), score, shown);
    showCounts(panels[index], canvas, score, Math.min(score.steps, Math.floor(state.time + 1e-9)));
  });
  find("position").value = Math.floor(state.time + 1e-9);
  find("now").textContent = `${Math.floor(state.time + 1e-9)} of ${stepsNow()}`;
  find("play").classList.toggle("runs", state.playing);
  find("play").setAttribute("aria-label", state.playing ? "Pause" : "Play");
}

function showCounts(panel, canvas, score, step) {
  const size = data.sizes[state.size], [now, all] = [score.tallies[step], score.tallies[score.steps]];
  const put = (name, value, text) => {
    const cell = panel.querySelector(`[data-count="${name}"]`);
    cell.dataset.value = value;
    cell.textContent = text;
  };
  for (const kind of ["near", "far"]) {
    const parts = [["", now.all], ["-all", all.all], ["-busiest", all.busiest]];
    for (const [suffix, tally] of parts) {
      const bytes = bytesOf(score, tally[kind].weight, size);
      put(`${kind}-messages${suffix}`, tally[kind].messages, tally[kind].messages);
      put(`${kind}-bytes${suffix}`, bytes, sizeWords(bytes));
    }
  }
  put("results", now.full, `${Math.floor(100 * now.full / Math.max(1, now.results))} %`);
  put("results-all", now.results, data.reduces ? "the results are there" : "the blocks have come");
  panel.querySelector(".there").hidden = now.results === 0;
  const text = caption(score, step);
  panel.querySelector(".step").textContent = text;
  canvas.setAttribute("aria-label", `${score.algorithm} on ${shapeNow().name}: ${text}`);
}

function caption(score, step) {
  if (step === 0) return `${score.steps} step${score.steps === 1 ? "" : "s"} to go`;
  const messages = score.stepList[step - 1], far = messages.filter(message => message.far).length;
  const weights = messages.map(message => message.weight), [low, high] = [Math.min(...weights), Math.max(...weights)];
  const blocks = (low === high ? low : `${low} to ${high}`) + (high === 1 ? " block" : " blocks");
  const each = messages.length > 0 && high > 0 ? `, ${blocks} each` : "";
  return `step ${step} of ${score.steps}: ${messages.length} message${messages.length === 1 ? "" : "s"}, ${far} far${each}`;
}

// A step takes a second, or less where there are many.
function play() {
  if (state.playing) { state.playing = false; return tickTo(state.time); }
  state.playing = true;
  if (state.time >= stepsNow()) state.time = 0;
  let before = performance.now();
  const frame = now => {
    if (!state.playing) return;
    const pace = Math.max(0.8, stepsNow() / 24) * Number(find("speed").value);
    const time = state.time + (now - before) / 1000 * pace;
    before = now;
    if (time >= stepsNow()) state.playing = false;
    tickTo(time);
    requestAnimationFrame(frame);
  };
  tickTo(state.time);
  requestAnimationFrame(frame);
}

// The rank below the pointer, by name.
function nameRank(event, index) {
  const shape = shapeNow(), canvas = event.currentTarget;
  const seat = seatAt(shape, scoresNow()[index], canvas.clientWidth, event.offsetX);
  const node = seat === null ? undefined : shape.boxes.find(box => box.depth === 1 && box.first <= seat && seat < box.end);
  canvas.title = seat === null ? "" : `rank ${shape.seats[seat]}` + (node ? `, node ${node.node}` : "");
}

function go(time) {
  state.playing = false;
  tickTo(time);
}

const onward = () => go(Math.floor(state.time + 1e-9) + 1);
const backward = () => go(Math.ceil(state.time - 1e-9) - 1);

function theme(name) {
  document.documentElement.dataset.theme = name;
  tickTo(state.time);
}

const otherTheme = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function listen() {
  find("shape").addEventListener("change", event => changeShape(Number(event.target.value)));
  find("size").addEventListener("input", event => { state.size = Number(event.target.value); show(); });
  find("position").addEventListener("input", event => go(Number(event.target.value)));
  const clicks = { play, forward: onward, back: backward, first: () => go(0), theme: otherTheme };
  for (const [id, action] of Object.entries(clicks)) find(id).addEventListener("click", action);
  const keys = { " ": play, ArrowRight: onward, ArrowLeft: backward, Home: () => go(0), End: () => go(stepsNow()), t: otherTheme, T: otherTheme };
  document.addEventListener("keydown", event => {
    // Those that a control in focus uses are its own.
    const own = event.target.closest("select, summary, input[type=range]") || (event.key === " " && event.target.closest("button"));
    if (own || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  panels.forEach((panel, index) => panel.querySelector("canvas").addEventListener("mousemove", event => nameRank(event, index)));
  new ResizeObserver(() => tickTo(state.time)).observe(find("sides"));
}

function begin() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
  const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  find("shape").replaceChildren(...data.shapes.map((shape, index) => new Option(`${shape.name} · ${plural(shape.ranks, "rank")}`, index)));
  find("size").max = data.sizes.length - 1;
  find("size").disabled = data.sizes.length < 2;
  find("what").textContent = WHAT[data.collective.replace(/v$|_block$/, "")] ?? "";
  find("about-cells").textContent = data.reduces
    ? "A cell is a block of the vector: filled as far as contributions have been combined on that rank, in whatever memory; 0-3 is combined from ranks 0 to 3, x5 from five ranks, where their numbers do not follow each other or do not fit. Pale cells are no part of the rank’s result."
    : "A cell is a block that the rank is to have, filled when it has come, in whatever memory. Blocks that only pass through are not shown.";
  find("parts").hidden = !data.reduces;
  find("machine").textContent = data.machine;
  find("machine-says").textContent = data.machine_says;
  const schedules = data.shapes.reduce((sum, shape) => sum + shape.scores.length, 0);
  find("holds").textContent = `${plural(schedules, "schedule")} on ${plural(data.shapes.length, "shape")} and ${plural(data.sizes.length, "size")}`;
  find("made").textContent = `allhands ${data.version}`;
  const first = data.asked ? scoreOf(...data.asked) : fastest(null);
  state.sides = [first, fastest(first.algorithm)];
  listen();
  show();
}

const WHAT = {
  allgather: "Everybody gets every rank’s block.",
  alltoall: "Everybody has a block for everybody.",
  allreduce: "Everybody gets the combination of all vectors.",
  neighbor_allgather: "Each rank gets the block of each of its neighbours.",
  neighbor_alltoall: "Each rank has a block for each of its neighbours.",
  reduce_scatter: "Each rank gets its part of the combination of all vectors.",
  bcast: "Everybody gets the root’s vector.",
  reduce: "The root gets the combination of all vectors.",
  gather: "The root gets every rank’s block.",
  scatter: "Each rank gets a block of the root’s.",
  scan: "Each rank gets the combination of the vectors of all ranks up to itself.",
  exscan: "Each rank gets the combination of the vectors of all ranks before it.",
  barrier: "Nobody goes on before everybody has come.",
};

begin();
