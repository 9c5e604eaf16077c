// Panels with a map of places and a slider through time, and of contrasts that are chosen in the page.

kinds.places = (panel) => {
  let time = panel.times ? panel.times.length - 1 : 0;
  let spot = null;
  const said = numberOf(panel);
  const label = html("output", {}, "");
  const slider = panel.times && panel.times.length > 1 ? html("input", { type: "range", id: "time", min: 0, max: panel.times.length - 1, value: time,
    oninput: () => { time = Number(slider.value); choose({}, false); } }) : null;
  const readout = html("p", { class: "readout", "aria-live": "polite" }, " ");
  const draw = (width) => {
    if (panel.times) label.textContent = `${panel.time} ${panel.times[time]}`;
    const [low, high] = extent([panel.p[chosen.item]]);
    readout.textContent = spot === null ? `${name(chosen.item)}: from ${said(low)} (small and pale) to ${said(high)} (large and dark)` : `${panel.names[spot]}: ${name(chosen.item)} ${said(panel.p[chosen.item][time][spot])}`;
    return placesPicture(panel, { width, time, spot, said, pick: (i) => { spot = i; choose({}, false); } });
  };
  const numbers = () => ({ header: [...panel.axes, ...(panel.times ? [panel.time] : []), data.noun, "probability"],
    rows: (panel.times ?? [null]).flatMap((t, m) => panel.at.map(([x, y], i) => [x, y, ...(panel.times ? [t] : []), name(chosen.item), panel.p[chosen.item][m][i]])) });
  const through = panel.times && panel.times.length > 1 ? picture((width) => placePath(panel, { width, time, spot, said }), "the chosen place through time; the numbers are in the table below") : null;
  return frame(panel, numbers, slider ? html("div", { class: "tools" }, html("label", { for: "time" }, panel.time), slider, label) : null,
    picture(draw, `${panel.title}; the numbers are in the table below`), readout, through);
};

const placesPicture = (panel, { width, time, spot, said, pick }) => {
  const xs = panel.at.map(([x]) => x);
  const ys = panel.at.map(([, y]) => y);
  const [west, east] = extent(xs);
  const [south, north] = extent(ys);
  const round = panel.geographic ? Math.cos(((south + north) / 2) * (Math.PI / 180)) : null;
  const height = round ? Math.max(200, Math.min(480, ((width - 40) * (north - south)) / ((east - west) * round) + 40)) : 320;
  const inner = round ? Math.min(width - 40, ((height - 40) * (east - west) * round) / (north - south)) : width - 40;
  const x = scale(west, east, (width - inner) / 2, (width + inner) / 2);
  const y = scale(south, north, height - 20, 20);
  const all = panel.p[chosen.item].flat().filter((p) => p !== null);
  const share = scale(...extent([all]), 0, 1);
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, height }, panel.at.map((_, i) => {
    const p = panel.p[chosen.item][time][i];
    const size = p === null ? 0 : share(p);
    return svg("circle", { class: "hot", "data-place": i, cx: x(xs[i]), cy: y(ys[i]), r: 3 + Math.min(12, width / 50) * size, fill: p === null ? "none" : "var(--plus)",
      "fill-opacity": 0.2 + 0.7 * size, stroke: i === spot ? "var(--mark)" : "var(--soft)", "stroke-width": i === spot ? 3 : 0.7, onclick: () => pick(i) },
    svg("title", {}, `${panel.names[i]}: ${said(p)}`));
  }));
};

// one place, or all of them in grey, through time
const placePath = (panel, { width, time, spot, said }) => {
  const height = 150;
  const p = panel.p[chosen.item];
  const span = extent([p.flat()], [0, 0]);
  const across = extent(panel.times);
  const x = scale(...across, 52, width - 12);
  const y = scale(...span, height - 26, 8);
  const one = (i) => path(panel.times.map(x), p.map((row) => heightOf(y)(row[i])));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, height }, leftAxis(y, 52, width - 12, ticks(...span, 3), said),
    bottomAxis(x, height - 26, ticks(...across, Math.max(2, Math.floor(width / 110))), String),
    panel.at.map((_, i) => svg("path", { d: one(i), fill: "none", stroke: "var(--fill)", "stroke-opacity": 0.5 })),
    spot === null ? null : svg("path", { d: one(spot), fill: "none", stroke: "var(--mark)", "stroke-width": 3 }),
    svg("line", { x1: x(panel.times[time]), x2: x(panel.times[time]), y1: 8, y2: height - 26, stroke: "var(--soft)", "stroke-dasharray": "2 3" }));
};

// two values of a covariate, chosen here; the other way round the signs change

const contrastRows = (panel, from, to) => {
  if (from === to) return [];
  const group = panel.groups.find((each) => each.name === `${Math.min(from, to)}|${Math.max(from, to)}`);
  const sign = from < to ? 1 : -1;
  return group.items.map((item, i) => ({ item, label: name(item), estimate: sign * group.estimate[i],
    lower: sign > 0 ? group.lower[i] : -group.upper[i], upper: sign > 0 ? group.upper[i] : -group.lower[i] }))
    .sort((a, b) => b.estimate - a.estimate);
};

kinds.contrast = (panel) => {
  let [from, to] = [0, panel.values.length - 1];
  const said = numberOf(panel);
  const pick = (label, now, set) => html("label", {}, `${label} `, html("select", { "aria-label": `${label}, ${panel.title}`, onchange: (event) => { set(Number(event.target.value)); choose({}, false); } },
    panel.values.map((value, i) => html("option", { value: i, selected: i === now }, value))));
  const draw = (width) => {
    const rows = contrastRows(panel, from, to);
    const best = new Set([...rows].sort((a, b) => Math.abs(b.estimate) - Math.abs(a.estimate)).slice(0, MOST_INTERVALS));
    return rows.length ? intervalRows(width, rows.filter((row) => best.has(row) || row.item === chosen.item), said) : html("p", { class: "soft" }, "choose two values");
  };
  return frame(panel, () => ({ header: ["from", "to", data.noun, "estimate", "lower", "upper"],
    rows: contrastRows(panel, from, to).map((row) => [panel.values[from], panel.values[to], row.label, row.estimate, row.lower, row.upper]) }),
  html("div", { class: "tools" }, pick("from", from, (i) => { from = i; }), pick("to", to, (i) => { to = i; })),
  picture(draw, `${panel.title}; the numbers are in the table below`));
};
