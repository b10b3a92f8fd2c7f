// Search over names, tables, columns, expressions and settings: a list under the field, and marks in the graph.

const SHOWN = 12;

function createSearch(field, list, data, act) {
  const haystacks = data.boxes.map((box) => [
    ["", box.id],
    ["", box.kind],
    ["table", box.table || ""],
    ["does", box.text],
    ...box.columns.map(([name]) => ["column", name]),
    ...box.facts.flatMap(([name, lines]) => lines.map((line) => [name, line])),
    ...box.settings.map((setting) => [setting.by === "edit" ? "edit" : "setting", `${setting.group} ${setting.input} ${setting.name} ${setting.value} ${setting.reason || ""}`]),
  ]);
  const lower = haystacks.map((parts) => parts.map(([, text]) => text.toLowerCase()));
  let found = [];
  let active = -1;

  function find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const hits = [];
    lower.forEach((texts, i) => {
      const places = words.map((word) => texts.findIndex((one) => one.includes(word)));
      if (places.includes(-1)) return;
      const where = Math.max(...places);
      const exact = texts[0] === words[0] ? 0 : texts[0].startsWith(words[0]) ? 1 : where === 0 ? 2 : 3;
      hits.push({ i, rank: exact, what: where ? haystacks[i][where] : null });
    });
    return hits.sort((a, b) => a.rank - b.rank || a.i - b.i);
  }

  function update() {
    found = find(field.value);
    active = found.length ? 0 : -1;
    act.mark(field.value.trim() ? new Set(found.map((hit) => hit.i)) : null);
    draw();
  }

  function draw() {
    const open = field.value.trim() !== "" && document.activeElement === field;
    list.hidden = !open;
    field.setAttribute("aria-expanded", String(open));
    const from = Math.max(0, Math.min(active - SHOWN + 3, found.length - SHOWN));
    const items = found.slice(from, from + SHOWN).map((hit, n) => h(
      "li", { role: "option", id: `hit${from + n}`, "aria-selected": String(from + n === active), onpointerdown: (event) => { event.preventDefault(); choose(from + n); } },
      h("span", { class: "mono" }, data.boxes[hit.i].id),
      hit.what ? h("span", { class: "soft" }, [hit.what[0], hit.what[1].slice(0, 60)].filter(Boolean).join(": ")) : null));
    const more = found.length ? `${found.length} of ${data.boxes.length} operators` : "nothing found";
    list.replaceChildren(...items, h("li", { class: "soft", role: "presentation" }, more));
    if (active >= 0 && open) field.setAttribute("aria-activedescendant", `hit${active}`);
    else field.removeAttribute("aria-activedescendant");
  }

  function choose(n) {
    if (!found[n]) return;
    active = n;
    act.go(found[n].i, false);
    draw();
  }

  field.addEventListener("input", update);
  field.addEventListener("focus", draw);
  field.addEventListener("blur", draw);
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      active = (active + step + found.length) % found.length;
      act.go(found[active].i, false);
      draw();
    } else if (event.key === "Enter" && active >= 0) {
      act.go(found[active].i, true);
    } else if (event.key === "Escape") {
      field.value = "";
      update();
      act.leave();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { clear: () => { field.value = ""; update(); }, active: () => field.value.trim() !== "" };
}
