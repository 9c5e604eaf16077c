// Scales and axes of the pictures, in pixels of the width that there is.

const scale = (low, high, from, to) => {
  const span = high - low || 1;
  return (x) => from + ((x - low) / span) * (to - from);
};

const ticks = (low, high, most) => {
  const span = high - low || Math.abs(low) || 1;
  const power = 10 ** Math.floor(Math.log10(span / most));
  const size = [1, 2, 5, 10].map((m) => m * power).find((s) => span / s <= most) ?? 10 * power;
  const found = [];
  for (let i = Math.ceil(low / size - 1e-9); i * size <= high + 1e-9 * span; i += 1) found.push(Number((i * size).toPrecision(12)));
  return found;
};

const extent = (values, start = null) => {
  let [low, high] = start ?? [Infinity, -Infinity];
  for (const value of values.flat(2)) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? (low === high ? [low - 0.5, high + 0.5] : [low, high]) : [0, 1];
};

const bottomAxis = (at, y, places, said) => places.map((place) => [
  svg("line", { x1: at(place), x2: at(place), y1: y, y2: y + 4, stroke: "var(--soft)" }),
  svg("text", { class: "soft", x: at(place), y: y + 16, "text-anchor": "middle" }, said(place)),
]);

const leftAxis = (at, x0, x1, places, said) => places.map((place) => [
  svg("line", { x1: x0, x2: x1, y1: at(place), y2: at(place), stroke: "var(--line)" }),
  svg("text", { class: "soft", x: x0 - 5, y: at(place) + 4, "text-anchor": "end" }, said(place)),
]);

const path = (xs, ys, broken = false) => {
  let d = "";
  let up = true;
  xs.forEach((x, i) => {
    if (ys[i] === null || Number.isNaN(ys[i])) { up = true; return; }
    d += `${up ? "M" : "L"}${x.toFixed(1)} ${ys[i].toFixed(1)}`;
    up = broken;
  });
  return d;
};

const band = (xs, lows, highs) => {
  const there = xs.map((_, i) => i).filter((i) => lows[i] !== null && highs[i] !== null);
  if (!there.length) return "";
  const one = there.map((i) => `${xs[i].toFixed(1)} ${highs[i].toFixed(1)}`);
  const other = there.reverse().map((i) => `${xs[i].toFixed(1)} ${lows[i].toFixed(1)}`);
  return `M${[...one, ...other].join("L")}Z`;
};

// draw(width) into a box, again when its width or what is chosen changes
const picture = (draw, label) => {
  const box = html("div", { class: "picture", role: "img", "aria-label": label });
  let width = 0;
  const redraw = () => { if (width > 0) box.replaceChildren(draw(width)); };
  new ResizeObserver((seen) => {
    const now = Math.floor(seen[0].contentRect.width);
    if (now === width) return;
    width = now;
    redraw();
  }).observe(box);
  follow(redraw);
  return box;
};
