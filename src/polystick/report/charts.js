// Panels that any model may have: intervals, lines, tables, facts.

const intervalRows = (width, rows, said, marks = false) => {
  const left = Math.min(Math.max(...rows.map((row) => shortened(row.label, 34).length), 3) * 7 + 10, width * 0.46);
  const most = Math.max(3, Math.floor(left / 7));
  const height = rows.length * 20 + 26;
  const span = extent(rows.map((row) => [row.estimate, row.lower, row.upper, row.seen ?? null]), rows.some((row) => row.estimate < 0) ? [0, 0] : null);
  const at = scale(...span, left + 6, width - 14);
  const bottom = height - 22;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, height },
    bottomAxis(at, bottom, ticks(...span, Math.max(2, Math.floor((width - left) / 90))), said),
    span[0] <= 0 && span[1] >= 0 ? svg("line", { x1: at(0), x2: at(0), y1: 0, y2: bottom, stroke: "var(--soft)", "stroke-dasharray": "2 3" }) : null,
    rows.map((row, i) => intervalRow(row, 20 * i + 11, at, left, most, said, width, marks)));
};

const intervalRow = (row, y, at, left, most, said, width, marks) => {
  const isMine = row.item !== undefined && row.item === chosen.item;
  const colour = isMine ? "var(--mark)" : row.estimate >= 0 ? "var(--plus)" : "var(--minus)";
  const click = row.item === undefined ? null : () => chooseItem(row.item);
  const sure = row.lower === null || row.lower > 0 || row.upper < 0;
  return svg("g", { class: click ? "hot" : null, "data-item": row.item ?? null, onclick: click },
    svg("title", {}, `${row.label}: ${said(row.estimate)} (${said(row.lower)} to ${said(row.upper)})`),
    svg("rect", { x: 0, y: y - 10, width, height: 20, fill: isMine ? "var(--glow)" : "transparent", "fill-opacity": 0.6 }),
    svg("text", { x: left, y: y + 4, "text-anchor": "end", "font-weight": isMine ? 700 : 400 }, shortened(row.label, most)),
    row.lower === null ? null : svg("line", { x1: at(row.lower), x2: at(row.upper), y1: y, y2: y, stroke: colour, "stroke-width": 3, "stroke-opacity": 0.65 }),
    row.estimate === null ? null : svg("circle", { cx: at(row.estimate), cy: y, r: 4, fill: sure ? colour : "var(--paper)", stroke: colour, "stroke-width": 1.5 }),
    marks && row.seen !== null ? svg("path", { d: `M${at(row.seen) - 4} ${y - 5}l8 10m0 -10l-8 10`, stroke: "var(--ink)", "stroke-width": 1.8, fill: "none" }) : null);
};

const MOST_INTERVALS = 24;

kinds.intervals = (panel) => {
  let group = 0;
  let all = false;
  const said = numberOf(panel);
  const rowsOf = ({ items, labels, estimate, lower, upper, seen }) => estimate.map((_, i) => ({ item: items ? items[i] : undefined,
    label: items ? name(items[i]) : labels[i], estimate: estimate[i], lower: lower[i], upper: upper[i], seen: seen ? seen[i] : null }));
  const some = (rows) => {
    if (all || rows.length <= MOST_INTERVALS) return rows;
    const best = new Set([...rows].sort((a, b) => Math.abs(b.estimate) - Math.abs(a.estimate)).slice(0, MOST_INTERVALS));
    return rows.filter((row) => best.has(row) || (row.item !== undefined && row.item === chosen.item));
  };
  const ordered = (rows) => (panel.as_given ? rows : [...rows].sort((a, b) => b.estimate - a.estimate));
  const draw = (width) => intervalRows(width, some(ordered(rowsOf(panel.groups[group]))), said, Boolean(panel.groups[group].seen));
  const again = () => choose({}, false);
  const pick = panel.groups.length < 2 ? null : html("label", {}, "show ", html("select", { onchange: (event) => { group = Number(event.target.value); again(); } },
    panel.groups.map((each, g) => html("option", { value: g }, each.name))));
  const more = panel.groups[0].estimate.length <= MOST_INTERVALS ? null
    : html("label", {}, html("input", { type: "checkbox", onchange: (event) => { all = event.target.checked; again(); } }), ` all ${panel.groups[0].estimate.length}`);
  return frame(panel, () => ({ header: ["group", "of", "estimate", "lower", "upper", ...(panel.groups[0].seen ? ["seen"] : [])],
    rows: panel.groups.flatMap((each) => rowsOf(each).map((row) => [each.name, row.label, row.estimate, row.lower, row.upper, ...(each.seen ? [row.seen] : [])])) }),
  pick || more ? html("div", { class: "tools" }, pick, more) : null,
  picture(draw, `${panel.title}; the numbers are in the table below`));
};

// lines over time or a number; where they are of things of the page, the chosen one stands out

const COLOURS = 7;

kinds.lines = (panel) => {
  const said = numberOf(panel);
  const readout = html("p", { class: "readout", "aria-live": "off" }, " ");
  const isOfItems = Boolean(panel.items);
  const label = (s) => (isOfItems ? name(panel.items[s]) : panel.names[s]);
  const isMine = (s) => isOfItems && panel.items[s] === chosen.item;
  const few = panel.y.length <= COLOURS;
  const colour = (s) => (few ? `var(--c${s % 8})` : isMine(s) || !isOfItems ? "var(--mark)" : "var(--fill)");
  const draw = (width) => linesPicture(panel, { width, said, label, isMine, few, colour, readout });
  const box = picture(draw, `${panel.title}; the numbers are in the table below`);
  return frame(panel, () => linesTable(panel, label), box, readout, few ? legend(panel, label) : null);
};

const linesTable = (panel, label) => ({
  header: ["of", panel.x_label ?? "x", "estimate", ...(panel.lower ? ["lower", "upper"] : [])],
  rows: panel.y.flatMap((ys, s) => ys.map((y, i) => [label(s), markAt(panel, i), y, ...(panel.lower ? [panel.lower[s][i], panel.upper[s][i]] : [])])),
});

const markAt = (panel, i) => (panel.marks ? panel.marks[i] : panel.x[i]);

const legend = (panel, label) => html("div", { class: "chips" }, panel.y.map((_, s) => {
  const text = [html("span", { "aria-hidden": "true", style: { color: `var(--c${s % 8})` } }, "▬ "), label(s)];
  return panel.items ? button(text, () => chooseItem(panel.items[s])) : html("span", { class: "soft" }, text);
}));

const linesPicture = (panel, { width, said, label, isMine, few, colour, readout }) => {
  const height = 300;
  const chosenOne = panel.y.findIndex((_, s) => isMine(s));
  const banded = panel.lower ? panel.y.map((_, s) => s).filter((s) => (few ? true : s === chosenOne)) : [];
  const fanned = (panel.fan ?? []).flatMap((one) => (few ? panel.y.map((_, s) => s) : [chosenOne]).filter((s) => s >= 0).map((s) => [...one.lower[s], ...one.upper[s]]));
  const counted = panel.seen && chosenOne >= 0 ? panel.seen[chosenOne] : [];
  const span = extent([panel.y.flat(), counted, ...fanned, ...banded.map((s) => [...panel.lower[s], ...panel.upper[s]])], panel.percent ? [0, 0] : null);
  const across = extent(panel.x);
  const left = 52;
  const x = scale(...across, left, width - 12);
  const y = scale(...span, height - 28, 10);
  const xs = panel.x.map(x);
  const order = panel.y.map((_, s) => s).sort((a, b) => isMine(a) - isMine(b));
  const cursor = svg("line", { y1: 8, y2: height - 28, stroke: "var(--soft)", "stroke-dasharray": "2 3", visibility: "hidden" });
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, "data-lines": panel.y.length },
    leftAxis(y, left, width - 12, ticks(...span, 5), said),
    bottomAxis(x, height - 28, xTicks(panel, across, width), (place) => saidAt(panel, place)),
    panel.split === undefined ? null : svg("line", { x1: x(panel.split), x2: x(panel.split), y1: 8, y2: height - 28, stroke: "var(--soft)" }),
    banded.map((s) => svg("path", { d: band(xs, panel.lower[s].map(heightOf(y)), panel.upper[s].map(heightOf(y))), fill: colour(s), "fill-opacity": few && !isMine(s) ? 0.14 : 0.28 })),
    (panel.fan ?? []).flatMap((one) => (few ? order : [chosenOne]).filter((s) => s >= 0).map((s) => svg("path", { d: band(xs, one.lower[s].map(heightOf(y)), one.upper[s].map(heightOf(y))), fill: colour(s), "fill-opacity": few && !isMine(s) ? 0.08 : 0.2 }))),
    order.map((s) => svg("path", { class: panel.items ? "hot" : null, "data-item": panel.items ? panel.items[s] : null, d: path(xs, panel.y[s].map(heightOf(y))), fill: "none", stroke: colour(s), "stroke-width": isMine(s) ? 3 : few ? 1.6 : 1,
      "stroke-linejoin": "round", onclick: panel.items ? () => chooseItem(panel.items[s]) : null }, svg("title", {}, label(s)))),
    dots(panel, x, y, chosenOne), cursor);
  drawn.addEventListener("pointermove", (event) => readOut(event, panel, { width, x, y, said, label, readout, cursor, drawn }));
  if (panel.items) drawn.addEventListener("click", (event) => { if (!event.target.closest(".hot")) chooseItem(panel.items[nearest(event, panel, { width, x, y, drawn }).s]); });
  return drawn;
};

const heightOf = (y) => (value) => (value === null ? null : y(value));

const dots = (panel, x, y, s) => (panel.seen && s >= 0 ? panel.seen[s].map((value, i) => (value === null ? null
  : svg("circle", { cx: x((panel.seen_at ?? panel.x)[i]), cy: y(value), r: 2.2, fill: "var(--ink)", "fill-opacity": 0.55 }))) : null);

const xTicks = (panel, across, width) => {
  const found = ticks(...across, Math.max(2, Math.floor(width / 90)));
  return panel.steps ? found.filter((place) => Number.isInteger(place) && panel.marks[place] !== undefined) : found;
};

const saidAt = (panel, place) => (panel.steps ? shortened(panel.marks[place], 12) : String(place));

const nearest = (event, panel, { width, x, y, drawn }) => {
  const box = drawn.getBoundingClientRect();
  const at = ((event.clientX - box.left) / box.width) * width;
  const high = event.clientY - box.top;
  const closest = (values, to) => values.reduce((best, value, i) => (value !== null && Math.abs(value - to) < Math.abs((values[best] ?? Infinity) - to) ? i : best), 0);
  const i = closest(panel.x.map(x), at);
  return { i, s: closest(panel.y.map((ys) => (ys[i] === null ? null : y(ys[i]))), high) };
};

const readOut = (event, panel, look) => {
  const { i, s } = nearest(event, panel, look);
  const { x, said, label, readout, cursor } = look;
  cursor.setAttribute("x1", x(panel.x[i]));
  cursor.setAttribute("x2", x(panel.x[i]));
  cursor.setAttribute("visibility", "visible");
  const range = panel.lower ? ` (${said(panel.lower[s][i])} to ${said(panel.upper[s][i])})` : "";
  readout.textContent = `${markAt(panel, i)}, ${label(s)}: ${said(panel.y[s][i])}${range}`;
};

// tables and facts

kinds.table = (panel) => {
  const numbers = () => ({ header: panel.columns.map((column) => column.name), rows: panel.cells[0].map((_, i) => panel.cells.map((column) => column[i])) });
  return frame(panel, numbers, html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": panel.title }, tableOf(numbers(), "")));
};

kinds.facts = (panel) => frame(panel, () => ({ header: ["what", "value"], rows: panel.pairs }),
  html("dl", {}, panel.pairs.map(([what, value]) => [html("dt", {}, what), html("dd", {}, value)])));
