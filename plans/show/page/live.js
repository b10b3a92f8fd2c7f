// The numbers of the run: reads them every two seconds, and changes texts and colours only. The graph keeps its layout.

const SIGNS = { "": "", hold: "◆ ", warn: "▲ ", bad: "■ " };
const RANK = ["", "hold", "warn", "bad"];
const KEPT = "hintplan-view";
const RETRY = 5000; // milliseconds until the next attempt, if the run does not answer
const tab = Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join("");
let last = null; // the last numbers
let heardAt = 0;
let run = null; // the process that answers
let quiet = false;

async function read() {
  let next = data.live.every;
  try {
    const answer = await fetch(`${data.live.url}?tab=${tab}`, { cache: "no-store", credentials: "same-origin" });
    if (!answer.ok) throw new Error(String(answer.status));
    const now = await answer.json();
    if ((run && now.run !== run && now.digest) || (now.digest && now.digest !== data.live.digest)) return again();
    run = now.run;
    heardAt = Date.now();
    quiet = false;
    last = now;
    show();
    if (now.over) next = RETRY;
  } catch {
    next = RETRY;
    if (!last?.over) {
      quiet = true;
      phase();
    }
  }
  setTimeout(read, next);
}

// Another plan runs, or the run has been started again: loads the page anew, with the same selection and view.
function again() {
  const { x, y, k, fitted } = view.state;
  const kept = { at: fitted ? null : [x, y, k], id: selected < 0 ? null : data.boxes[selected].id };
  try { sessionStorage.setItem(KEPT, JSON.stringify(kept)); } catch { /* the page opens as a whole */ }
  location.reload();
}

function restore() {
  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(KEPT));
    sessionStorage.removeItem(KEPT);
  } catch { /* nothing is kept */ }
  if (!kept) return;
  const i = data.boxes.findIndex((box) => box.id === kept.id);
  if (i >= 0) select(i, { focus: false });
  if (kept.at) { [view.state.x, view.state.y, view.state.k] = kept.at; view.state.fitted = false; view.paint(); }
}

function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function level(node, name, prefix = "") {
  for (const each of RANK) if (each) node.classList.toggle(prefix + each, each === name);
}

const WORDS = {
  starting: "starting", waiting: "waiting for the checkpoint", running: "running", restarting: "restarting", stopping: "stopping",
  finished: "finished", stopped: "stopped", failed: "failed", ended: "ended",
};

function phase() {
  const name = quiet ? "gone" : last.phase;
  const words = quiet ? "no answer" : WORDS[name] || name;
  const node = $("phase");
  put(node, words);
  node.className = name;
  node.classList.toggle("waits", ["starting", "waiting", "restarting", "stopping"].includes(name));
  node.classList.toggle("over", ["finished", "stopped", "ended"].includes(name));
  document.title = `${data.title} · ${words}`;
  document.body.classList.toggle("ended", quiet || Boolean(last?.over));
  heard();
}

function heard() {
  const at = heardAt && new Date(heardAt).toLocaleTimeString();
  if (quiet) return put($("heard"), heardAt ? `the run has ended or cannot be reached; its numbers are of ${at}` : "the run does not answer");
  if (!last) return;
  if (last.over) return put($("heard"), `the run is over; its numbers are of ${at}`);
  const restarts = last.restarts ? ` · ${last.restarts} ${last.restarts === 1 ? "restart" : "restarts"}` : "";
  put($("heard"), `for ${age(last.now - last.since)}${restarts} · read ${at}`);
}

function age(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = units.findIndex(([size]) => seconds >= size);
  if (at < 0) return "0 s";
  const [size, name] = units[at];
  const rest = units[at + 1] && Math.floor((seconds % size) / units[at + 1][0]);
  return `${Math.floor(seconds / size)} ${name}${rest ? ` ${rest} ${units[at + 1][1]}` : ""}`;
}

function show() {
  phase();
  $("failure").hidden = !last.failure;
  put($("failure"), last.failure || "");
  queries();
  boxes();
  detail();
}

// --- boxes ---
const WIDTH = 6.75; // of a character of the numbers

function boxes() {
  for (const [i, box] of view.state.boxes) {
    const lines = last.operators[data.live.ids[i]]?.lines;
    if (!lines) continue;
    let worst = "";
    for (const node of box.node.querySelectorAll(".live")) {
      const line = lines[node.dataset.row];
      if (!line) continue;
      const room = Math.floor((box.w - 36 - node.dataset.row.length * 6) / WIDTH);
      const text = SIGNS[line.level] + line.text;
      put(node.lastChild, text.length > room ? `${text.slice(0, room - 1)}…` : text);
      level(node, line.level);
      if (RANK.indexOf(line.level) > RANK.indexOf(worst)) worst = line.level;
    }
    level(box.node, worst, "is-");
    // Far away, the sign is beside the large text.
    const far = box.node.querySelector(".far");
    far.dataset.text ??= far.textContent;
    far.dataset.size ??= far.getAttribute("font-size");
    const [own, text] = [far.dataset.text, SIGNS[worst] + far.dataset.text];
    put(far, text);
    far.setAttribute("font-size", (far.dataset.size * own.length) / text.length);
  }
}

// --- the queries, in the panel ---
const rows = new Map();

function queries() {
  const names = last.queries.map((query) => query.query).join("\n");
  if ($("queries").dataset.names !== names) {
    $("queries").dataset.names = names;
    rows.clear();
    $("queries").replaceChildren(...last.queries.map((query) => queryRow(query)));
  }
  if (!last.queries.length) return put($("queries"), last.over ? "It ended before its first batch." : "Its queries have not started yet.");
  for (const query of last.queries) fill(rows.get(query.query), query);
}

function queryRow(query) {
  const number = h("span", { class: "number" });
  const batch = h("dd", {}, number, " ", h("span", { class: "soft" }));
  const parts = { batch, number, why: batch.lastChild, at: h("span", { class: "soft" }), flow: h("dd"), tasks: h("dd"), bars: bars() };
  rows.set(query.query, parts);
  const stream = data.live.mode !== "batch";
  return h("div", { class: "query" },
    h("div", { class: "names" }, h("span", { class: "mono" }, inWords(query.sinks.join(", "))), parts.at),
    h("dl", { class: "numbers" }, h("dt", {}, stream ? "batch" : "job"), batch, stream ? [h("dt", {}, "rows"), parts.flow, h("dt", {}, "at work"), parts.tasks] : []),
    stream ? parts.bars : null);
}

function fill(parts, query) {
  put(parts.at, query.batch == null ? "" : `batch ${query.batch.toLocaleString("en")}`);
  put(parts.number, SIGNS[query.line.level] + query.line.text);
  put(parts.why, query.line.note && `· ${query.line.note}`);
  level(parts.batch, query.line.level);
  put(parts.flow, query.rows);
  put(parts.tasks, query.at_work || (query.running_ms ? `for ${age(query.running_ms / 1000)}` : "idle"));
  drawBars(parts.bars, query.durations_ms, query.usual_ms);
}

const SVG = "http://www.w3.org/2000/svg";
const BARS = 60;

function bars() {
  const node = document.createElementNS(SVG, "svg");
  for (const [name, value] of [["class", "bars"], ["viewBox", `0 0 ${BARS * 6} 30`], ["preserveAspectRatio", "none"], ["role", "img"]]) node.setAttribute(name, value);
  for (let i = 0; i < BARS; i++) node.append(document.createElementNS(SVG, "rect"));
  node.append(document.createElementNS(SVG, "line"));
  return node;
}

function drawBars(node, durations, usual) {
  const most = Math.max(...durations, usual || 0, 1);
  const shown = [...node.children].slice(0, BARS);
  const y = (value) => 30 - Math.max((value / most) * 28, 1);
  shown.forEach((rect, i) => {
    const value = durations[i - (BARS - durations.length)];
    for (const [name, at] of [["x", i * 6], ["y", value == null ? 30 : y(value)], ["width", 5], ["height", value == null ? 0 : 30 - y(value)]]) rect.setAttribute(name, at);
    rect.classList.toggle("slow", usual != null && value > Math.max(5000, 2 * usual));
  });
  for (const [name, at] of [["x1", 0], ["x2", usual == null ? 0 : BARS * 6], ["y1", y(usual || 0)], ["y2", y(usual || 0)]]) node.lastChild.setAttribute(name, at);
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
  node.setAttribute("aria-label", durations.length ? `the last ${durations.length} batches took ${seconds(Math.min(...durations))} to ${seconds(most)}` : "no batch yet");
}

// --- the selected operator ---
let shownOf = -1;
const cells = new Map();

function detail() {
  const numbers = selected < 0 ? null : last?.operators[data.live.ids[selected]];
  if (!numbers) return;
  const lines = Object.entries(numbers.lines).map(([name, line]) => [name, SIGNS[line.level] + line.text, line.note, `line ${line.level}`]);
  const all = [...lines, ...numbers.details.map(([name, text, about]) => [name, text, about, ""])];
  const names = all.map(([name]) => name).join("\n");
  let table = $("now");
  if (!table || shownOf !== selected || table.dataset.names !== names) {
    table?.closest("section").remove();
    cells.clear();
    const body = h("tbody", {}, all.map((row, i) => {
      const cell = h("td");
      const why = h("td", { colspan: 2 });
      const made = h("tr", {}, h("td", { title: row[3] ? null : row[2] }, row[0]), cell);
      const note = row[3] ? h("tr", { class: "why" }, why) : null;
      cells.set(i, { made, cell, note, why });
      return [made, note];
    }));
    table = h("table", { id: "now", class: "now" }, body);
    table.dataset.names = names;
    $("detail").querySelector("header").after(h("section", {}, h("h3", {}, "Now"), table));
    shownOf = selected;
  }
  all.forEach(([, text, note, kind], i) => {
    const { made, cell, note: below, why } = cells.get(i);
    put(cell, text);
    made.className = kind;
    if (!below) return;
    put(why, note);
    below.hidden = !note;
  });
}

document.addEventListener("hintplan-select", () => { shownOf = -1; detail(); });
document.addEventListener("hintplan-layer", () => last && boxes());
restore();
read();
