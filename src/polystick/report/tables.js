// The numbers behind a picture: as a table, for those who do not see it, and as a CSV file.

const quoted = (cell) => {
  const text = cell === null || cell === undefined ? "" : String(cell);
  // a cell that begins like a formula would be run by a spreadsheet
  const safe = typeof cell === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

const csv = ({ header, rows }) => [header, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n");

const save = (title, numbers) => {
  const address = URL.createObjectURL(new Blob(["\ufeff", csv(numbers)], { type: "text/csv" }));
  const link = html("a", { href: address, download: `${title.replace(/[^\p{L}\p{N}]+/gu, "_").slice(0, 60)}.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};

const MOST_ROWS = 300;

const cell = (value, tag = "td") => html(tag, { class: typeof value === "number" ? "number" : null, scope: tag === "th" ? "col" : null },
  typeof value === "number" ? plain(value) : value ?? "");

const tableOf = ({ header, rows }, caption) => html("table", {},
  html("caption", {}, rows.length > MOST_ROWS ? `${caption}: the first ${MOST_ROWS} of ${rows.length} rows; the CSV file has all` : caption),
  html("thead", {}, html("tr", {}, header.map((each) => cell(each, "th")))),
  html("tbody", {}, rows.slice(0, MOST_ROWS).map((row) => html("tr", {}, row.map((each) => cell(each))))));

// a table that is made when it is opened, and again when something else is chosen
const behind = (title, numbers) => {
  const box = html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title });
  const fold = html("details", {}, html("summary", {}, "the numbers as a table"), box);
  const fill = () => { if (fold.open) box.replaceChildren(tableOf(numbers(), title)); };
  fold.addEventListener("toggle", fill);
  follow(fill);
  return fold;
};

const frame = (panel, numbers, ...content) => {
  const saves = numbers === null ? null : button("save as CSV", () => save(panel.title, numbers()), { class: "plain", "aria-label": `save ${panel.title} as CSV` });
  return html("section", { class: `panel ${panel.wide ? "wide" : panel.double ? "double" : ""}`, "data-kind": panel.kind, "aria-label": panel.title },
    html("header", {}, html("h3", {}, panel.title), saves),
    content,
    panel.note ? html("p", { class: "note" }, panel.note) : null,
    numbers === null || panel.kind === "table" ? null : behind(panel.title, numbers));
};
