// Time against size, both logarithmic: the two algorithms, and what none can beat.
function drawChart(svg, shape, sides, sizeIndex) {
  const lines = sides.map((score, index) => ({ name: score.algorithm, className: "ab"[index], us: score.us }));
  lines.push({ name: "lower bound", className: "bound", us: shape.bounds[Number(sides.every(score => score.shares))] });
  const values = lines.flatMap(line => line.us).filter(us => us > 0);
  svg.replaceChildren();
  svg.closest("figure").hidden = data.sizes.length < 2;
  if (values.length === 0) return;
  const [width, height, left, bottom] = [560, 250, 58, 34];
  const low = Math.floor(Math.log10(Math.min(...values))), high = Math.ceil(Math.log10(Math.max(...values)) + 1e-9);
  const x = index => left + 14 + (width - left - 40) * index / Math.max(1, data.sizes.length - 1);
  const y = us => 14 + (height - bottom - 14) * (high - Math.log10(us)) / Math.max(1, high - low);
  const add = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    svg.append(element);
  };
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (let power = low; power <= high; power++) {
    add("line", { class: "grid", x1: left, x2: width - 10, y1: y(10 ** power), y2: y(10 ** power) });
    add("text", { class: "tick", x: left - 8, y: y(10 ** power) + 4, "text-anchor": "end" }, tick(10 ** power));
  }
  add("line", { class: "now", x1: x(sizeIndex), x2: x(sizeIndex), y1: 8, y2: height - bottom });
  const sparse = data.sizes.length > 8 ? 2 : 1;
  data.sizes.forEach((size, index) => {
    if (index % sparse === 0) add("text", { class: "tick", x: x(index), y: height - 12, "text-anchor": "middle" }, sizeWords(size));
  });
  for (const line of [...lines].reverse()) {
    const points = line.us.map((us, index) => us > 0 ? `${x(index).toFixed(1)},${y(us).toFixed(1)}` : null).filter(Boolean);
    add("polyline", { class: line.className, points: points.join(" ") });
    const now = line.us[sizeIndex];
    if (now > 0 && line.className !== "bound") add("circle", { class: line.className, cx: x(sizeIndex), cy: y(now), r: 5 });
  }
}

function tick(us) {
  return us >= 1e6 ? us / 1e6 + " s" : us >= 1e3 ? us / 1e3 + " ms" : us + " µs";
}
