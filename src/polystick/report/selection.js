// What is chosen: one thing (a topic, a category), one word. It stands in the address, so that it can be shared.

const data = JSON.parse(document.getElementById("data").textContent);
const chosen = { item: data.items.length ? 0 : null, word: "", relevance: 0.6, frex: false };
const followers = [];

const follow = (update) => { followers.push(update); };
const name = (item) => data.items[item].label;
const isItem = (item) => Number.isInteger(item) && item >= 0 && item < data.items.length;

const choose = (changes, push = true) => {
  Object.assign(chosen, changes);
  for (const update of followers) update();
  if (push) history.replaceState(null, "", address());
};

const address = () => {
  const parts = new URLSearchParams();
  if (chosen.item !== null) parts.set(data.noun, chosen.item);
  if (chosen.word) parts.set("word", chosen.word);
  if (chosen.relevance !== 0.6) parts.set("relevance", chosen.relevance);
  if (chosen.frex) parts.set("frex", "1");
  return `#${parts}`;
};

const readAddress = () => {
  const parts = new URLSearchParams(location.hash.slice(1));
  const item = parts.has(data.noun) ? Number(parts.get(data.noun)) : null;
  const relevance = Number(parts.get("relevance") ?? 0.6);
  choose({
    item: isItem(item) ? item : chosen.item,
    word: parts.get("word") ?? "",
    relevance: relevance >= 0 && relevance <= 1 ? relevance : 0.6,
    frex: parts.get("frex") === "1",
  }, false);
};

const chooseItem = (item) => choose({ item });

const step = (by) => {
  if (chosen.item === null) return;
  const order = data.order ?? data.items.map((_, i) => i);
  const place = order.indexOf(chosen.item) + by;
  chooseItem(order[(place + order.length) % order.length]);
};
