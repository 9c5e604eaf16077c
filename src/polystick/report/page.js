// The page: its head, a bar that stays, sections of panels, keys.

const verdictBox = ({ good, text }) => html("p", { class: `verdict ${good === true ? "good" : good === false ? "bad" : ""}` },
  html("strong", {}, good === true ? "✓ " : good === false ? "⚠ " : ""), text);

const head = () => html("header", { class: "top" },
  html("h1", {}, data.title), html("p", { class: "soft" }, [data.model === data.title ? null : data.model, data.subtitle].filter(Boolean).join(": ")), verdictBox(data.verdict));

const bar = (sections) => {
  const now = html("div", { class: "chosen", "aria-live": "polite" });
  follow(() => { now.textContent = chosen.item === null ? "" : `${data.noun} ${data.items[chosen.item].name === name(chosen.item) ? "" : `${data.items[chosen.item].name}: `}${name(chosen.item)}`; });
  const hits = html("div", { class: "hits", id: "hits", hidden: true, role: "region", "aria-label": "what was found" });
  const field = html("input", { type: "search", id: "search", "aria-controls": "hits", autocomplete: "off",
    placeholder: wordsPanel() ? "search a word ( / )" : `search a ${data.noun} ( / )`, "aria-label": "search",
    oninput: () => showHits(hits, field.value.trim()) });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") hits.querySelector("button")?.click();
    if (event.key === "Escape") { field.value = ""; hits.hidden = true; field.blur(); }
  });
  hits.addEventListener("click", (event) => { if (event.target.closest("button")) { hits.hidden = true; field.value = ""; } });
  const jump = html("nav", { "aria-label": "sections" }, sections.map((section) => button(section.title, () => section.node.scrollIntoView({ behavior: "smooth" }), { class: "plain" })));
  const arrows = data.items.length < 2 ? null : [button("‹", () => step(-1), { "aria-label": `previous ${data.noun}` }), button("›", () => step(1), { "aria-label": `next ${data.noun}` })];
  return html("div", { class: "bar" }, html("div", {}, arrows, now, jump, data.items.length ? field : null), hits);
};

const showHits = (box, text) => {
  const asked = text.toLowerCase();
  box.hidden = !asked;
  if (!asked) return;
  const found = [...itemHits(asked), ...wordHits(asked)];
  box.replaceChildren(...(found.length ? found : [html("p", { class: "soft" }, `nothing has “${text}”`)]));
};

const itemHits = (asked) => (wordsPanel() ? [] : data.items.map((_, i) => i).filter((i) => name(i).toLowerCase().includes(asked))
  .slice(0, 12).map((i) => html("div", {}, button(name(i), () => chooseItem(i), { class: "plain" }))));

const wordHits = (asked) => {
  const panel = wordsPanel();
  if (!panel) return [];
  const starts = panel.vocabulary.map((word, w) => [word, w]).filter(([word]) => word.toLowerCase().startsWith(asked));
  const ordered = starts.sort(([a, v], [b, w]) => (b.toLowerCase() === asked) - (a.toLowerCase() === asked) || panel.all[w] - panel.all[v]);
  return ordered.slice(0, 8).map(([word, w]) => {
    const of = panel.speaks[w];
    const topics = [];
    for (let i = 0; i < of.length; i += 2) topics.push(button(`${shortened(name(of[i]), 30)} ${of[i + 1]} %`, () => choose({ item: of[i], word }), { class: "plain" }));
    return html("div", {}, html("strong", {}, word), html("div", {}, topics));
  });
};

const drawSection = (section) => {
  const panels = section.panels.map((panel) => kinds[panel.kind](panel));
  const node = html("section", { "aria-label": section.title }, html("h2", {}, section.title), html("div", { class: "panels" }, panels));
  return { title: section.title, node };
};

const keys = (event) => {
  if (event.target.closest?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("search")?.focus(); }
  if (event.key === "ArrowRight" || event.key === "j") step(1);
  if (event.key === "ArrowLeft" || event.key === "k") step(-1);
};

const start = () => {
  if (data.order) chosen.item = data.order[0];
  if (wordsPanel()) learnWords(wordsPanel());
  const sections = data.sections.map(drawSection);
  document.body.append(head(), bar(sections), html("main", {}, sections.map(({ node }) => node)),
    html("footer", {}, "Keys: ← and → for the next one, / to search. The address of this page holds what is chosen. Nothing here asks the network."));
  document.addEventListener("keydown", keys);
  window.addEventListener("hashchange", readAddress);
  readAddress();
};

start();
