"use strict";
// Elements: all text goes in as text, so that no name can become a part of the page.

const make = (space) => (tag, given = {}, ...children) => {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(given)) put(node, name, value);
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  return node;
};

const put = (node, name, value) => {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name === "style") Object.assign(node.style, value);
  else node.setAttribute(name, value === true ? "" : value);
};

const html = make(null);
const svg = make("http://www.w3.org/2000/svg");

const percent = (p) => {
  if (p === null || p === undefined) return "";
  if (p === 0) return "0 %";
  const size = Math.abs(100 * p);
  return `${(100 * p).toFixed(size >= 10 ? 0 : size >= 1 ? 1 : size >= 0.01 ? 2 : 4)} %`;
};

const plain = (x) => {
  if (x === null || x === undefined) return "";
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return String(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(2);
  return String(Number(x.toPrecision(4)));
};

const numberOf = (panel) => (panel.percent ? percent : plain);

const button = (text, onclick, more = {}) => html("button", { type: "button", onclick, ...more }, text);
