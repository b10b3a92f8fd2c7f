// The graph on the screen: panning, zooming, the small map, and drawing only its visible part.

const SMALL = 0.42; // below this scale, boxes show their large text
const DOTS = 0.06; // below this scale, the boxes of a large graph are dots, because nothing in them is legible

function createView(graph, data) {
  const { svg, map, dots } = graph;
  const state = {
    x: 0, y: 0, k: 1, layer: null, boxes: new Map(), edges: [], fitted: true, extent: null, stored: new Map(), culls: false, kept: null,
  };
  let frame = 0;

  function use(name) {
    for (const layer of svg.querySelectorAll(".layer")) if (layer.id !== name) layer.setAttribute("hidden", "");
    state.layer = document.getElementById(name);
    state.extent = { w: Number(state.layer.dataset.w), h: Number(state.layer.dataset.h) };
    state.boxes = new Map();
    // A large graph is in a template; only its visible part is inserted into the page.
    const stored = document.getElementById(`${name}-stored`)?.content;
    const [edges, boxes] = [state.layer.querySelector(".edges"), state.layer.querySelector(".boxes")];
    state.culls = Boolean(stored);
    for (const node of state.stored.get(name)?.boxes || (stored || state.layer).querySelectorAll(".box")) {
      const i = Number(node.dataset.i);
      const [x, y] = name === "folded" ? data.boxes[i].folded : data.boxes[i].at;
      const [w, h] = data.boxes[i].size;
      state.boxes.set(i, { node, home: boxes, away: !node.isConnected, x, y, w, h });
    }
    const arrows = state.stored.get(name)?.edges || [...(stored || state.layer).querySelectorAll(".edge")];
    state.stored.set(name, { boxes: [...state.boxes.values()].map((box) => box.node), edges: arrows });
    state.edges = arrows.map((node) => {
      const s = state.boxes.get(Number(node.dataset.s));
      const t = state.boxes.get(Number(node.dataset.t));
      return {
        node, home: edges, away: !node.isConnected, s: Number(node.dataset.s), t: Number(node.dataset.t),
        x: Math.min(s.x, t.x), y: Math.min(s.y, t.y) - 200, r: Math.max(s.x + s.w, t.x + t.w), b: Math.max(s.y + s.h, t.y + t.h) + 200,
      };
    });
    paint();
  }

  function size() {
    return { w: svg.clientWidth || 1, h: svg.clientHeight || 1 };
  }

  // On paper, the whole graph is as large as the sheet allows; updates of the screen must not interfere.
  let printing = false;
  function print(on) {
    printing = on;
    cancelAnimationFrame(frame);
    if (on) {
      svg.setAttribute("viewBox", `0 0 ${state.extent.w} ${state.extent.h}`);
      svg.classList.remove("small");
      state.layer.removeAttribute("transform");
      state.layer.removeAttribute("hidden");
      for (const item of [...state.boxes.values(), ...state.edges]) hide(item, false);
    } else {
      svg.removeAttribute("viewBox");
      paint();
    }
  }

  function paint() {
    cancelAnimationFrame(frame);
    if (printing) return;
    frame = requestAnimationFrame(() => {
      state.layer.setAttribute("transform", `translate(${state.x} ${state.y}) scale(${state.k})`);
      svg.classList.toggle("small", state.k < SMALL);
      cull();
      state.layer.removeAttribute("hidden");
      drawMap();
    });
  }

  function cull() {
    if (!state.culls) {
      dots.hidden = true;
      return;
    }
    const { w, h } = size();
    const left = -state.x / state.k - 300, top = -state.y / state.k - 300;
    const right = left + w / state.k + 600, bottom = top + h / state.k + 600;
    const tiny = drawDots();
    for (const box of state.boxes.values()) {
      hide(box, box !== state.kept && (tiny || box.x > right || box.y > bottom || box.x + box.w < left || box.y + box.h < top));
    }
    for (const edge of state.edges) {
      hide(edge, tiny || edge.x > right || edge.y > bottom || edge.r < left || edge.b < top);
    }
  }

  function hide(item, hidden) {
    if (item.away === hidden) return;
    item.away = hidden;
    if (hidden) item.node.remove();
    else item.home.append(item.node);
  }

  function zoom(factor, cx, cy) {
    const { w, h } = size();
    const [px, py] = [cx ?? w / 2, cy ?? h / 2];
    const k = Math.min(3, Math.max(0.008, state.k * factor));
    state.x = px - ((px - state.x) * k) / state.k;
    state.y = py - ((py - state.y) * k) / state.k;
    state.k = k;
    state.fitted = false;
    paint();
  }

  function fit() {
    const { w, h } = size();
    const { w: gw, h: gh } = state.extent;
    // The legend lies over the bottom of the graph.
    const free = h - Math.min(document.getElementById("legend").offsetHeight + 10, h * 0.15);
    state.k = Math.max(0.008, Math.min(1.15, w / gw, free / gh));
    state.x = Math.round((w - gw * state.k) / 2);
    state.y = Math.round((free - gh * state.k) / 2);
    state.fitted = true;
    paint();
  }

  // A large plan is illegible as a whole, so it opens at its first difference, edit or state, with the map next to it.
  function start() {
    fit();
    // A narrow screen shows the whole plan, as long as its TTLs are legible as large text.
    if (state.k < (size().w < 600 ? 0.15 : 0.45)) {
      const first = data.boxes.findIndex((box) => box.mark || box.edited);
      const stateful = data.boxes.findIndex((box) => box.stateful);
      state.k = 0.75;
      centre(first >= 0 ? first : Math.max(stateful, 0));
      // No empty margin on one side while the graph continues on the other.
      const { w, h } = size();
      const within = (at, screen, graph) => (graph > screen ? Math.min(0, Math.max(at, screen - graph)) : (screen - graph) / 2);
      state.x = within(state.x, w, state.extent.w * state.k);
      state.y = within(state.y, h, state.extent.h * state.k);
    }
  }

  function pan(dx, dy) {
    state.x += dx;
    state.y += dy;
    state.fitted = false;
    paint();
  }

  function centre(i) {
    const box = state.boxes.get(i);
    if (!box) return;
    const { w, h } = size();
    state.x = w / 2 - (box.x + box.w / 2) * state.k;
    state.y = h / 2 - (box.y + box.h / 2) * state.k;
    state.fitted = false;
    paint();
  }

  function reveal(i) {
    const box = state.boxes.get(i);
    if (!box) return;
    // The selected box stays in the page even out of view, because it has the focus.
    state.kept = box;
    hide(box, false);
    if (state.k < 0.3) state.k = 0.8;
    const { w, h } = size();
    const left = box.x * state.k + state.x, top = box.y * state.k + state.y;
    const right = left + box.w * state.k, bottom = top + box.h * state.k;
    if (left < 16 || top < 16 || right > w - 16 || bottom > h - 16) centre(i);
    else paint();
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function fillBoxes(pen, scale) {
    const found = { added: colour("added"), removed: colour("removed"), changed: colour("changed"), moved: colour("moved") };
    const [edit, stateful, wait, other] = ["edit", "state", "wait", "edge"].map(colour);
    const least = 1.6 / scale;
    for (const [i, box] of state.boxes) {
      const about = data.boxes[i];
      pen.fillStyle = found[about.mark] || (about.edited ? edit : about.stateful ? stateful : about.wait ? wait : other);
      pen.fillRect(box.x, box.y, Math.max(box.w, least), Math.max(box.h, least));
    }
  }

  // Draws the boxes as dots if the scale is below DOTS; returns true if it did.
  function drawDots() {
    dots.hidden = state.k >= DOTS;
    if (dots.hidden) return false;
    const ratio = window.devicePixelRatio || 1;
    const { w, h } = size();
    dots.width = w * ratio;
    dots.height = h * ratio;
    const pen = dots.getContext("2d");
    pen.setTransform(ratio * state.k, 0, 0, ratio * state.k, ratio * state.x, ratio * state.y);
    fillBoxes(pen, state.k);
    return true;
  }

  // --- the small map ---
  function drawMap() {
    const { w, h } = size();
    const { w: gw, h: gh } = state.extent;
    const needed = state.boxes.size > 25 && (gw * state.k > w * 1.02 || gh * state.k > h * 1.02);
    map.hidden = !needed;
    if (!needed) return;
    const scale = Math.min(210 / gw, 130 / gh);
    const ratio = window.devicePixelRatio || 1;
    map.width = Math.max(1, gw * scale * ratio);
    map.height = Math.max(1, gh * scale * ratio);
    map.style.width = `${gw * scale}px`;
    map.style.height = `${gh * scale}px`;
    const pen = map.getContext("2d");
    pen.scale(ratio * scale, ratio * scale);
    fillBoxes(pen, scale);
    pen.strokeStyle = colour("focus");
    pen.lineWidth = 1.5 / scale;
    pen.strokeRect(-state.x / state.k, -state.y / state.k, w / state.k, h / state.k);
  }

  function toMap(event) {
    const place = map.getBoundingClientRect();
    const { w, h } = size();
    state.x = w / 2 - ((event.clientX - place.left) / place.width) * state.extent.w * state.k;
    state.y = h / 2 - ((event.clientY - place.top) / place.height) * state.extent.h * state.k;
    state.fitted = false;
    paint();
  }

  // --- mouse, touch pad, fingers ---
  const fingers = new Map();
  let dragged = 0;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    dragged = 0;
  });
  svg.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) return;
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    if (fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const before = Math.hypot(last[0] - other[0], last[1] - other[1]);
      const after = Math.hypot(event.clientX - other[0], event.clientY - other[1]);
      const place = svg.getBoundingClientRect();
      zoom(after / Math.max(before, 1), (event.clientX + other[0]) / 2 - place.left, (event.clientY + other[1]) / 2 - place.top);
    } else {
      pan(dx, dy);
    }
    dragged += Math.abs(dx) + Math.abs(dy);
    // An earlier capture would take the click from the box under the mouse.
    if (dragged > 4 && !svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
    svg.addEventListener(end, (event) => fingers.delete(event.pointerId));
  }
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const place = svg.getBoundingClientRect();
    // A mouse wheel zooms; two fingers pan, and pinch with ctrlKey set.
    const wheel = event.ctrlKey || event.metaKey || (event.deltaMode !== 0 || (event.deltaX === 0 && Math.abs(event.deltaY) >= 50));
    if (wheel) zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), event.clientX - place.left, event.clientY - place.top);
    else pan(-event.deltaX, -event.deltaY);
  }, { passive: false });
  map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); toMap(event); });
  map.addEventListener("pointermove", (event) => { if (event.buttons) toMap(event); });
  new ResizeObserver(() => (state.fitted && !printing ? fit() : paint())).observe(svg);

  return { state, use, fit, start, zoom, pan, centre, reveal, paint, print, wasDragged: () => dragged > 4 };
}
