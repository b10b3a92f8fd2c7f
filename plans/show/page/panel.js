// The side panel: everything about one operator. Text of the plan is inserted as text, never as markup.

function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== ""));
  return node;
}

function section(title, ...children) {
  return children.flat().length ? h("section", {}, h("h3", {}, title), ...children) : null;
}

function describeBox(box, data, go) {
  const chips = [h("span", { class: "chip" }, box.kind)];
  if (box.mark) chips.push(h("span", { class: `chip ${box.mark}` }, box.mark));
  if (box.emptied) chips.push(h("span", { class: "chip removed" }, "state starts empty"));
  if (box.edited) chips.push(h("span", { class: "chip edit" }, "edited"));
  const states = box.settings.filter((setting) => setting.state);
  const others = box.settings.filter((setting) => !setting.state);
  const groups = [...new Set(others.map((setting) => setting.group))];
  const links = (numbers) => numbers.map((i) => h("li", {}, operatorLink(i, data, go)));
  return [
    h("header", {}, h("h2", {}, box.id), h("p", { class: "chips" }, chips), h("p", { class: "what" }, box.text)),
    section("Differences", changeList(box.changes.map((n) => data.changes[n]))),
    section("State", states.map((setting) => settingRow(setting, data, go))),
    groups.map((group) => section(group, others.filter((s) => s.group === group).map((s) => settingRow(s, data, go)))),
    section("Reads", box.in.length ? h("ul", { class: "links" }, links(box.in)) : []),
    section("Read by", box.out.length ? h("ul", { class: "links" }, links(box.out)) : []),
    section("Facts", factList(box.facts)),
    section(`Columns out (${box.columns.length})`, box.columns.length ? columnTable(box.columns) : []),
    section("Row kinds out", box.kinds.length ? h("p", { class: "mono" }, box.kinds.join(" ")) : []),
    tableSection(data.tables[box.table], box.table),
    box.functions.map((name) => section(`Function ${name}`, factList(data.functions[name] || []))),
  ].flat(Infinity).filter(Boolean);
}

function factList(facts) {
  const lines = (texts) => texts.map((text) => h("div", {}, text));
  return facts.length ? h("dl", {}, facts.map(([name, texts]) => [h("dt", {}, name), h("dd", {}, lines(texts))])) : [];
}

function operatorLink(i, data, go) {
  return h("button", { type: "button", class: "link", onclick: () => go(i) }, data.boxes[i].id);
}

function settingRow(setting, data, go) {
  const shown = setting.state && /^0 /.test(setting.value) ? `${setting.value} (never expires)` : setting.value;
  const lines = data.lines.filter(([, , path]) => path === setting.path);
  return h(
    "div", { class: `setting by-${setting.by}` },
    h("div", { class: "top" },
      h("span", { class: "name" }, setting.state ? `${setting.group} ${setting.input}` : setting.name),
      setting.before != null ? [h("del", {}, setting.before), h("span", { class: "to" }, "→")] : null,
      h("strong", {}, shown),
      setting.path ? copyButton(`hintplan set ${quoted(data.file)} ${quoted(`${setting.path}=${setting.value}`)}`) : null),
    h("ol", { class: "layers", "aria-label": "layers, the strongest last" },
      setting.layers.map(([layer, value]) => {
        const line = lines.find(([, , , said]) => said === layer);
        const where = line ? h("button", { type: "button", class: "link", onclick: () => go.line(line[0]) }, `line ${line[0]}`) : null;
        return h("li", { class: setting.by === layer ? "wins" : "" }, h("span", {}, layer), " ", h("b", {}, value), where ? " " : null, where);
      }),
      setting.path && (setting.by === "edit" || setting.layers.length === 0) ? h("li", { class: `wins ${setting.by}` }, h("span", {}, setting.by), " ", h("b", {}, setting.value)) : null),
    setting.reason ? h("blockquote", {}, setting.reason) : null);
}

function copyButton(text) {
  const button = h("button", { type: "button", class: "copy", title: `Copy: ${text}`, "aria-label": `Copy the command ${text}` }, "copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = h("textarea", {}, text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1200);
  });
  return button;
}

function quoted(text) {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function changeList(changes) {
  return changes.length ? h("ul", { class: "changes" }, changes.map((change) => h(
    "li", { class: `${change.kind} ${change.level}` },
    h("span", { class: "mono" }, inWords(`${change.sign} ${change.path}`)),
    change.value ? h("div", { class: "mono value" }, inWords(change.value)) : null,
    h("div", { class: "soft", title: change.because }, inWords([change.note, change.effect].filter(Boolean).join(" · ")))))) : [];
}

// A line may break after a dot or an underscore of a name, but not inside a word.
function inWords(text) {
  return text.split(/(?<=[_.])/).flatMap((word, i) => (i ? [h("wbr"), word] : [word]));
}

function columnTable(columns) {
  return h("table", {}, h("tbody", {}, columns.map(([name, type, from]) => h(
    "tr", {}, h("td", {}, inWords(name)), h("td", { class: "soft" }, type), h("td", { class: "soft" }, from || "")))));
}

function tableSection(table, name) {
  if (!table) return null;
  const options = table.options.map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]);
  return h("section", {}, h("h3", {}, `Table ${name}`), table.comment ? h("p", { class: "soft" }, table.comment) : null,
    h("dl", {}, options), h("details", {}, h("summary", {}, `${table.columns.length} columns`), columnTable(table.columns)));
}
