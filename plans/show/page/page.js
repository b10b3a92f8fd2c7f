// The page as a whole: selection, keys, themes, folding, the SQL, printing.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const svg = $("graph");
const view = createView({ svg, map: $("map"), dots: $("dots") }, data);
const DIM_AT_MOST = 1500; // boxes; in a larger graph, only the selection is highlighted and the rest is not dimmed
let selected = -1;
let restoreFocus = null;

function select(i, options = {}) {
  selected = i;
  const box = data.boxes[i];
  mark("selected", []);
  if (reachable) reachable.tabIndex = -1;
  light(i);
  if (i < 0) {
    $("detail").hidden = true;
    $("overview").hidden = false;
    markLines([]);
    reach(first());
    return;
  }
  if (!view.state.boxes.has(i)) fold(false);
  const node = view.state.boxes.get(i).node;
  mark("selected", [node]);
  reach(node);
  $("detail").replaceChildren(
    h("button", { type: "button", class: "link back", onclick: () => leave() }, "← Plan"), ...describeBox(box, data, go));
  $("detail").querySelector("header").after(...[section("Evidence", curvesOf(i))].filter(Boolean));
  $("detail").hidden = false;
  $("overview").hidden = true;
  document.dispatchEvent(new Event("hintplan-select"));
  $("panel").scrollTop = 0;
  document.body.classList.remove("no-panel");
  // The operator's own hints explain more than config for all operators, so they scroll into view first.
  const lines = data.lines.filter(([, of]) => of === i).sort((a, b) => (b[3] === "hint") - (a[3] === "hint"));
  markLines(lines.map(([line]) => line));
  view.reveal(i);
  if (options.focus !== false) node.focus({ preventScroll: true });
  say(`${box.id}, ${box.kind}`);
}

// The curves of an operator's states, as the overview has them.
function curvesOf(i) {
  const figures = [...$("overview").querySelectorAll("figure.evidence")].filter((figure) => figure.querySelector(`[data-go="${i}"]`));
  return figures.map((figure) => {
    const copy = figure.cloneNode(true);
    for (const button of copy.querySelectorAll("button")) button.replaceWith(button.textContent);
    return copy;
  });
}

const go = (i) => select(i);
go.line = (number) => showLine(number);

// Dims all boxes except the selected operator and its direct and indirect inputs and readers.
function light(i) {
  const lit = new Set();
  const walk = (from, next) => {
    const seen = new Set([from]);
    const stack = [from];
    while (stack.length) for (const n of data.boxes[stack.pop()][next]) if (!seen.has(n)) { seen.add(n); stack.push(n); }
    for (const n of seen) lit.add(n);
  };
  if (i >= 0 && view.state.boxes.size <= DIM_AT_MOST) { walk(i, "in"); walk(i, "out"); }
  const dim = i >= 0 && view.state.boxes.size <= DIM_AT_MOST;
  svg.classList.toggle("selecting", dim);
  mark("off", dim ? [...view.state.boxes].filter(([n]) => !lit.has(n)).map(([, box]) => box.node) : []);
  mark("off", dim ? view.state.edges.filter((edge) => !(lit.has(edge.s) && lit.has(edge.t))).map((edge) => edge.node) : [], "edges");
}

// Sets the class of these nodes only, and removes it from the previous ones: in a large graph, updating all nodes takes seconds.
const marked = new Map();
function mark(name, nodes, kind = "boxes") {
  const key = `${name} ${kind}`;
  const wanted = new Set(nodes);
  for (const node of marked.get(key) || []) if (!wanted.has(node)) node.classList.remove(name);
  for (const node of wanted) node.classList.add(name);
  marked.set(key, wanted);
}

function leave() {
  const last = selected;
  select(-1);
  view.state.boxes.get(last)?.node.focus({ preventScroll: true });
}

// The Tab key reaches one box at a time; the arrow keys move on from there.
let reachable = null;
function reach(node) {
  reachable = node || null;
  if (reachable) reachable.tabIndex = 0;
}

function first() {
  return view.state.boxes.values().next().value?.node;
}

function say(text) {
  $("said").textContent = text;
}

// --- moving along arrows, and between boxes one above the other ---
function step(key) {
  if (selected < 0) {
    const start = [...view.state.boxes.keys()].find((i) => !data.boxes[i].in.length);
    return select(start ?? 0);
  }
  const here = view.state.boxes.get(selected);
  const near = (numbers) => visible(numbers).sort((a, b) => Math.abs(view.state.boxes.get(a).y - here.y) - Math.abs(view.state.boxes.get(b).y - here.y))[0];
  if (key === "ArrowRight") return move(near(along(selected, "out")));
  if (key === "ArrowLeft") return move(near(along(selected, "in")));
  const down = key === "ArrowDown";
  let best;
  for (const [i, box] of view.state.boxes) {
    const away = down ? box.y - here.y : here.y - box.y;
    if (i === selected || away <= 0 || Math.abs(box.x - here.x) > here.w / 2) continue;
    if (!best || away < best.away) best = { i, away };
  }
  move(best?.i);
}

function along(i, direction) {
  // Skips folded boxes.
  return data.boxes[i][direction].flatMap((n) => (view.state.boxes.has(n) ? [n] : along(n, direction)));
}

const visible = (numbers) => numbers.filter((i) => view.state.boxes.has(i));
const move = (i) => { if (i != null) select(i); };

function nextMark(by) {
  const marked = data.boxes.map((box, i) => i).filter((i) => data.boxes[i].mark || (!data.diff && data.boxes[i].edited));
  if (!marked.length) return say(data.diff ? "no differences" : "no edits");
  const at = marked.indexOf(selected);
  select(marked[at < 0 ? (by > 0 ? 0 : marked.length - 1) : (at + by + marked.length) % marked.length]);
}

// --- folding ---
function fold(on) {
  if (!$("folded")) return;
  document.body.classList.toggle("folding", on);
  $("fold").setAttribute("aria-pressed", String(on));
  const keep = selected;
  view.use(on ? "folded" : "whole");
  document.dispatchEvent(new Event("hintplan-layer"));
  if (keep >= 0 && view.state.boxes.has(keep)) select(keep, { focus: false });
  else { select(-1); view.fit(); }
  search.active() || markFound(null);
}

// --- search ---
function markFound(found) {
  svg.classList.toggle("searching", found !== null && view.state.boxes.size <= DIM_AT_MOST);
  const nodes = [...(found || [])].map((i) => view.state.boxes.get(i)?.node).filter(Boolean);
  mark("found", nodes);
}
const search = createSearch($("search"), $("hits"), data, {
  mark: markFound,
  go: (i, focus) => select(i, { focus }),
  leave: () => (selected >= 0 ? view.state.boxes.get(selected)?.node : first())?.focus({ preventScroll: true }),
});

// --- the SQL ---
function markLines(numbers) {
  if (!$("sql")) return;
  for (const line of $("sql").querySelectorAll("li.lit")) line.classList.remove("lit");
  const lines = numbers.map((n) => $(`line${n}`)).filter(Boolean);
  for (const line of lines) line.classList.add("lit");
  lines[0]?.scrollIntoView({ block: "center" });
}

function showLine(number) {
  document.body.classList.remove("no-sql");
  markLines([number]);
}

for (const line of $("sql")?.querySelectorAll("li[data-boxes]") || []) {
  const boxes = line.dataset.boxes.split(" ").map(Number);
  line.querySelector("button").addEventListener("click", () => select(boxes[(boxes.indexOf(selected) + 1) % boxes.length]));
}

// --- themes: the system's theme until the user chooses one ---
const themes = ["auto", "light", "dark"];
function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  $("theme").textContent = { auto: "Auto", light: "Light", dark: "Dark" }[name];
  $("theme").setAttribute("aria-label", `Colours: ${name}`);
  try { localStorage.setItem("hintplan-theme", name); } catch { /* a local file may have no storage */ }
  view.paint();
}
const themeNow = () => document.documentElement.dataset.theme || "auto";
const nextTheme = () => theme(themes[(themes.indexOf(themeNow()) + 1) % themes.length]);

// --- keys ---
const actions = {
  "/": () => $("search").focus(),
  "?": () => toggleHelp(),
  f: () => view.fit(), 0: () => view.fit(),
  "+": () => view.zoom(1.25), "=": () => view.zoom(1.25), "-": () => view.zoom(0.8),
  c: () => fold(!document.body.classList.contains("folding")),
  s: () => $("sql") && document.body.classList.toggle("no-sql"),
  p: () => document.body.classList.toggle("no-panel"),
  t: () => nextTheme(),
  n: () => nextMark(1), N: () => nextMark(-1),
  Escape: () => (search.active() ? search.clear() : selected >= 0 ? leave() : null),
};

function toggleHelp() {
  const help = $("help");
  if (help.open) return help.close();
  restoreFocus = document.activeElement;
  help.showModal();
}
$("help").addEventListener("close", () => restoreFocus?.focus?.({ preventScroll: true }));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea")) return;
  if ($("help").open) { if (event.key === "?") { event.preventDefault(); toggleHelp(); } return; }
  const inGraph = !event.target.closest("#panel, #sql, header");
  if (event.key.startsWith("Arrow") && inGraph) { event.preventDefault(); return step(event.key); }
  if ((event.key === "Enter" || event.key === " ") && event.target.closest(".box")) {
    event.preventDefault();
    return select(Number(event.target.closest(".box").dataset.i));
  }
  const action = actions[event.key];
  if (action) { event.preventDefault(); action(); }
});

svg.addEventListener("click", (event) => {
  if (view.wasDragged()) return;
  const box = event.target.closest(".box");
  if (box) select(Number(box.dataset.i));
  else if (selected >= 0) select(-1);
});
svg.addEventListener("dblclick", (event) => { if (!event.target.closest(".box")) view.fit(); });
for (const button of document.querySelectorAll("button[data-key]")) button.addEventListener("click", () => actions[button.dataset.key]());
for (const button of document.querySelectorAll("button[data-go]")) button.addEventListener("click", () => select(Number(button.dataset.go)));

// --- printing: the whole graph, then the plan in words ---
addEventListener("beforeprint", () => view.print(true));
addEventListener("afterprint", () => view.print(false));

try { theme(themes.includes(localStorage.getItem("hintplan-theme")) ? localStorage.getItem("hintplan-theme") : "auto"); } catch { theme("auto"); }
if (matchMedia("(max-width: 600px)").matches) document.body.classList.add("no-sql"); // a narrow screen shows the graph and its table first
svg.removeAttribute("viewBox");
view.use("whole");
view.start();
reach(first());
document.documentElement.classList.add("ready");
