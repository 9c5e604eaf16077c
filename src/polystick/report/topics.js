// Panels of topics: the list of all, their map, words, who goes with whom, documents, chains.

const kinds = {};

// the list of all things of the page, with their shares

kinds.index = (panel) => {
  const widest = Math.max(...panel.upper.filter((x) => x !== null), 1e-9);
  const list = html("ul", { class: "items" });
  const buttons = panel.order.map((item) => {
    const chains = panel.chains ? `, in ${panel.chains[item]} of ${panel.n_chains} chains` : "";
    const said = `${percent(panel.estimate[item])}, 90 % interval ${percent(panel.lower[item])} to ${percent(panel.upper[item])}${chains}`;
    const one = button([html("span", { class: "name" }, name(item)), shareBar(panel, item, widest),
      html("span", { class: "number" }, percent(panel.estimate[item]))], () => chooseItem(item), { title: `${name(item)}: ${said}` });
    list.append(html("li", {}, one));
    return [item, one];
  });
  list.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const now = buttons.findIndex(([, one]) => one === document.activeElement);
    const next = buttons[Math.min(Math.max(now + by, 0), buttons.length - 1)];
    next[1].focus();
    chooseItem(next[0]);
  });
  follow(() => buttons.forEach(([item, one]) => {
    one.setAttribute("aria-current", String(item === chosen.item));
    if (item === chosen.item) intoView(list, one);
  }));
  return frame(panel, () => ({
    header: [data.noun, "label", "share", "lower", "upper", ...(panel.chains ? ["chains"] : [])],
    rows: panel.order.map((i) => [data.items[i].name, name(i), panel.estimate[i], panel.lower[i], panel.upper[i], ...(panel.chains ? [panel.chains[i]] : [])]),
  }), list);
};

const intoView = (box, one) => {
  const top = one.offsetTop - box.offsetTop;
  if (top < box.scrollTop || top + one.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 3;
};

const shareBar = (panel, item, widest) => {
  const at = scale(0, widest, 0, 86);
  return svg("svg", { viewBox: "0 0 88 12", "aria-hidden": "true" },
    svg("rect", { x: 0, y: 2, height: 8, width: at(panel.estimate[item]), fill: "var(--fill)" }),
    svg("line", { x1: at(panel.lower[item]), x2: at(panel.upper[item]), y1: 6, y2: 6, stroke: "var(--ink)", "stroke-width": 1.5 }));
};

// pairs: i < j, in the order of the upper triangle

const pairNumber = (i, j, n) => (i < j ? i * n - (i * (i + 1)) / 2 + j - i - 1 : pairNumber(j, i, n));

const pairPlaces = (n) => {
  const found = [];
  for (let i = 0; i < n; i += 1) for (let j = i + 1; j < n; j += 1) found.push([i, j]);
  return found;
};

const isKnown = (pairs, k) => pairs.lower[k] > 0 || pairs.upper[k] < 0;

const signed = (x) => (x === null ? "unknown" : `${x > 0 ? "+" : "−"}${Math.abs(x).toFixed(2)}`);

const saidOfPair = (pairs, k) => `${signed(pairs.mean[k])} (${signed(pairs.lower[k])} to ${signed(pairs.upper[k])})`;

kinds.map = (panel) => {
  const n = data.items.length;
  const places = pairPlaces(n);
  const draw = (width) => {
    const height = Math.min(520, Math.max(300, width * 0.75));
    const largest = Math.max(...panel.size);
    const reach = Math.min(width, height) / 11;
    const spots = panel.at.map(([x, y], i) => ({ item: i, r: Math.max(4, reach * Math.sqrt(panel.size[i] / largest)),
      x: scale(0, 1, reach + 4, width - reach - 4)(x), y: scale(0, 1, reach + 4, height - reach - 14)(y) }));
    const shown = new Set(panel.lines);
    strongest(panel.pairs, n).forEach((k) => shown.add(k));
    const lines = [...shown].map((k) => edge(panel, k, spots[places[k][0]], spots[places[k][1]]));
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, height },
      lines, spots.map(spotNode), mapLabels(spots, width));
  };
  return frame(panel, () => ({ header: [data.noun, "label", "x", "y", "share"],
    rows: panel.at.map(([x, y], i) => [data.items[i].name, name(i), x, y, panel.size[i]]) }),
  picture(draw, `Map of ${data.items.length} ${data.noun}s; the numbers are in the table below`));
};

const MOST_EDGES = 8;

// the strongest pairs of the chosen one that are known not to be zero
const strongest = (pairs, n) => data.items.map((_, i) => i).filter((i) => i !== chosen.item)
  .map((i) => pairNumber(chosen.item, i, n)).filter((k) => isKnown(pairs, k))
  .sort((a, b) => Math.abs(pairs.mean[b]) - Math.abs(pairs.mean[a])).slice(0, MOST_EDGES);

const edge = (panel, k, one, other) => {
  const mine = one.item === chosen.item || other.item === chosen.item;
  const r = panel.pairs.mean[k];
  return svg("line", { x1: one.x, y1: one.y, x2: other.x, y2: other.y, stroke: r > 0 ? "var(--plus)" : "var(--minus)",
    "stroke-width": (mine ? 1.2 : 0.4) + 4 * Math.abs(r), "stroke-opacity": mine ? 0.9 : 0.3, "stroke-dasharray": r > 0 ? null : "5 4" },
  svg("title", {}, `${name(one.item)} | ${name(other.item)}: ${panel.what} ${saidOfPair(panel.pairs, k)}`));
};

const spotNode = (spot) => svg("circle", { class: "hot", "data-item": spot.item, cx: spot.x, cy: spot.y, r: spot.r,
  fill: spot.item === chosen.item ? "var(--mark)" : "var(--fill)", stroke: spot.item === chosen.item ? "var(--ink)" : "var(--soft)",
  "stroke-width": spot.item === chosen.item ? 2.5 : 1, onclick: () => chooseItem(spot.item) }, svg("title", {}, name(spot.item)));

// labels of the chosen one, then of the largest, as long as none lies on another
const mapLabels = (spots, width) => {
  const order = [...spots].sort((a, b) => (b.item === chosen.item) - (a.item === chosen.item) || b.r - a.r);
  const boxes = [];
  return order.map((spot) => {
    const text = shortened(name(spot.item), 28);
    const half = text.length * 3.1 + 2;
    const x = Math.min(Math.max(spot.x, half), width - half);
    const box = [x - half, spot.y + spot.r, x + half, spot.y + spot.r + 14];
    if (boxes.some((b) => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3])) return null;
    boxes.push(box);
    return svg("text", { class: "halo", x, y: spot.y + spot.r + 11, "text-anchor": "middle", "pointer-events": "none",
      "font-weight": spot.item === chosen.item ? 700 : 400, "font-size": 11 }, text);
  });
};

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// who goes along with the chosen one, and who keeps away

kinds.partners = (panel) => {
  const n = data.items.length;
  const places = pairPlaces(n);
  const rows = () => data.items.map((_, i) => i).filter((i) => i !== chosen.item)
    .map((i) => ({ item: i, k: pairNumber(chosen.item, i, n) }))
    .filter(({ k }) => panel.mean[k] !== null)
    .sort((a, b) => panel.mean[b.k] - panel.mean[a.k]);
  const title = html("p", { class: "soft" });
  const draw = (width) => {
    const all = rows();
    const some = all.length > 16 ? [...all.slice(0, 8), ...all.slice(-8)] : all;
    title.textContent = `${panel.what} with “${name(chosen.item)}”${all.length > some.length ? ": the eight highest and lowest" : ""}`;
    return intervalRows(width, some.map(({ item, k }) => ({ item, label: name(item), estimate: panel.mean[k], lower: panel.lower[k], upper: panel.upper[k] })), plain);
  };
  return frame(panel, () => ({ header: ["one", "other", panel.what, "lower", "upper"],
    rows: places.map(([i, j], k) => [name(i), name(j), panel.mean[k], panel.lower[k], panel.upper[k]]).sort((a, b) => Math.abs(b[2]) - Math.abs(a[2])) }),
  title, picture(draw, `${panel.what} of the chosen ${data.noun} with others`));
};

// words

kinds.words = (panel) => {
  const box = html("div", { class: "words" });
  const title = html("p", { class: "soft", "aria-live": "polite" });
  const slider = html("input", { type: "range", min: 0, max: 1, step: 0.05, id: "relevance", oninput: () => choose({ relevance: Number(slider.value), frex: false }) });
  const said = html("output", { for: "relevance" });
  const frex = html("input", { type: "checkbox", id: "frex", onchange: () => choose({ frex: frex.checked }) });
  const fill = () => {
    slider.value = chosen.relevance;
    frex.checked = chosen.frex;
    said.textContent = chosen.frex ? "" : chosen.relevance.toFixed(2);
    title.textContent = name(chosen.item);
    box.replaceChildren(...bestWords(panel).slice(0, 20).flatMap((word) => wordRow(panel, word)));
  };
  follow(fill);
  return frame(panel, () => ({ header: ["word", "probability", "probability in all", "FREX"],
    rows: bestWords(panel).map((w) => [panel.vocabulary[w.word], w.p, panel.all[w.word], w.frex]) }),
  title, html("div", { class: "tools" }, html("label", { for: "relevance" }, "relevance"), slider, said,
    html("label", {}, frex, " by FREX")), box);
};

const bestWords = (panel) => {
  const { word, p, frex } = panel.words[chosen.item];
  const value = (i) => (chosen.frex ? frex[i] : chosen.relevance * Math.log(p[i]) + (1 - chosen.relevance) * Math.log(p[i] / panel.all[word[i]]));
  return word.map((w, i) => ({ word: w, p: p[i], frex: frex[i], value: value(i) })).sort((a, b) => b.value - a.value);
};

const wordRow = (panel, { word, p }) => {
  const widest = Math.max(...panel.words[chosen.item].p, 1e-12);
  const text = panel.vocabulary[word];
  const rod = html("span", { class: "rod", "aria-hidden": "true" },
    html("i", { style: { width: `${Math.min(100, (100 * panel.all[word]) / widest)}%` } }), html("i", { style: { width: `${(100 * p) / widest}%` } }));
  return [button(text, () => choose({ word: text }), { title: `${text}: ${percent(p)} here, ${percent(panel.all[word])} in all` }), rod, html("span", { class: "number" }, percent(p))];
};

const wordsPanel = () => data.sections.flatMap((s) => s.panels).find((panel) => panel.kind === "words");

// which topics a word speaks of: word -> Map of topic -> from 0 to 1
const speaking = new Map();
const learnWords = (panel) => panel.vocabulary.forEach((word, w) => {
  const of = new Map();
  for (let i = 0; i < panel.speaks[w].length; i += 2) of.set(panel.speaks[w][i], panel.speaks[w][i + 1] / 100);
  speaking.set(word.toLowerCase(), of);
});

// documents

kinds.documents = (panel) => {
  const box = html("div", { class: "cards" });
  follow(() => box.replaceChildren(...panel.of[chosen.item].map((d) => card(panel.documents[d]))));
  return frame(panel, () => ({ header: [data.noun, "document", "tokens", "share", "text"],
    rows: panel.of.flatMap((found, t) => found.map((d) => panel.documents[d])
      .map((one) => [name(t), one.name, one.tokens, (one.shares.find(([k]) => k === t) ?? [t, null])[1], one.text])) }), box);
};

const card = (one) => html("article", { class: "card" },
  html("h3", {}, `Document ${one.name}`), html("p", { class: "soft" }, `${one.tokens} tokens`),
  html("p", { class: "text", tabindex: 0 }, highlighted(one.text)),
  html("div", { class: "chips" }, one.shares.filter(([, p]) => p >= 0.02).map(([t, p]) => button(`${shortened(name(t), 26)} ${percent(p)}`, () => chooseItem(t)))));

const highlighted = (text) => text.split(/([\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*)/u).map((part) => {
  const sure = speaking.get(part.toLowerCase())?.get(chosen.item) ?? 0;
  const asked = chosen.word && part.toLowerCase() === chosen.word.toLowerCase();
  if (sure < 0.25 && !asked) return part;
  return html("mark", { class: sure >= 0.6 || asked ? "sure" : null, title: sure ? `speaks of this topic: ${percent(sure)}` : null }, part);
});

// which chains have which topic

kinds.chains = (panel) => {
  const nChains = panel.similarity.length;
  const body = html("tbody");
  const rows = (data.order ?? data.items.map((_, i) => i)).map((item) => {
    const row = html("tr", {}, html("th", { scope: "row" }, button(shortened(name(item), 40), () => chooseItem(item), { class: "plain" })),
      panel.similarity.map((of, c) => html("td", { class: "number" }, `${panel.found[c][item] ? "●" : "○"} ${of[item].toFixed(2)}`)));
    body.append(row);
    return [item, row];
  });
  follow(() => rows.forEach(([item, row]) => row.classList.toggle("chosen", item === chosen.item)));
  const header = [data.noun, ...Array.from({ length: nChains }, (_, c) => `chain ${c}${c === panel.best ? " (shown)" : ""}`)];
  return frame(panel, () => ({ header, rows: rows.map(([item]) => [name(item), ...panel.similarity.map((of) => of[item])]) }),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": panel.title }, html("table", {}, html("thead", {}, html("tr", {}, header.map((each) => cell(each, "th")))), body)));
};
