"use strict";
// The items of a run: lists that one can search, sort and save, the surroundings of a node, and a threshold.
const cut = (text, limit) => (text.length > limit ? `${text.slice(0, limit - 1)}…` : text);
// Characters that cannot be seen are written as escapes, as in escape.py.
const visible = (text) => text.replace(/(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
// Plotly reads markup, mathematics and templates in text; see plain() in chart_plotly.py.
const plain = (text, limit) => cut(text, limit).replace(/[&<>$%]/g, (character) => `&#${character.charCodeAt(0)};`);
const element = (tag, text, name) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
};
const format = (value, digits) =>
  value.toLocaleString("en", Number.isInteger(value) ? {} : { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");

function save(name, content, type) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A workbook with one sheet: text stays text, numbers are numbers in every language. A zip file without compression.
function workbook(rows) {
  const encode = (text) => new TextEncoder().encode(text);
  const escape = (text) => text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\u{10ffff}]/gu, "\ufffd").replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
  const cell = (value) => (typeof value === "number" ? `<c><v>${value}</v></c>` : value === null ? "<c/>" : `<c t="inlineStr"><is><t xml:space="preserve">${escape(value)}</t></is></c>`);
  const xml = (body) => encode(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>${body}`);
  const office = "http://schemas.openxmlformats.org";
  const relation = (id, kind, target) => `<Relationships xmlns="${office}/package/2006/relationships"><Relationship Id="${id}" Type="${office}/officeDocument/2006/relationships/${kind}" Target="${target}"/></Relationships>`;
  const type = (part, kind) => `<Override PartName="${part}" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.${kind}+xml"/>`;
  const files = {
    "[Content_Types].xml": xml(`<Types xmlns="${office}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>${type("/xl/workbook.xml", "sheet.main")}${type("/xl/worksheets/sheet1.xml", "worksheet")}</Types>`),
    "_rels/.rels": xml(relation("r1", "officeDocument", "xl/workbook.xml")),
    "xl/workbook.xml": xml(`<workbook xmlns="${office}/spreadsheetml/2006/main" xmlns:r="${office}/officeDocument/2006/relationships"><sheets><sheet name="list" sheetId="1" r:id="r1"/></sheets></workbook>`),
    "xl/_rels/workbook.xml.rels": xml(relation("r1", "worksheet", "worksheets/sheet1.xml")),
    "xl/worksheets/sheet1.xml": xml(`<worksheet xmlns="${office}/spreadsheetml/2006/main"><sheetData>${rows.map((row) => `<row>${row.map(cell).join("")}</row>`).join("")}</sheetData></worksheet>`),
  };
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? 0xedb88320 ^ (byte >>> 1) : byte >>> 1;
    return byte;
  });
  const crc = (bytes) => (bytes.reduce((sum, byte) => table[(sum ^ byte) & 255] ^ (sum >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;
  const numbers = (...pairs) => {
    const view = new DataView(new ArrayBuffer(pairs.reduce((sum, [, size]) => sum + size, 0)));
    pairs.reduce((at, [value, size]) => { view[`setUint${8 * size}`](at, value, true); return at + size; }, 0);
    return new Uint8Array(view.buffer);
  };
  const [parts, directory] = [[], []];
  let at = 0;
  for (const [name, bytes] of Object.entries(files)) {
    // Version 2.0, no flags, stored, 1980-01-01, checksum and both sizes, length of the name.
    const common = [[20, 2], [0, 2], [0, 2], [0, 2], [0x21, 2], [crc(bytes), 4], [bytes.length, 4], [bytes.length, 4], [name.length, 2], [0, 2]];
    const head = [numbers([0x04034b50, 4], ...common), encode(name), bytes];
    directory.push(numbers([0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [at, 4]), encode(name));
    parts.push(...head);
    at += head.reduce((sum, part) => sum + part.length, 0);
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const count = Object.keys(files).length;
  return new Blob([...parts, ...directory, numbers([0x06054b50, 4], [0, 2], [0, 2], [count, 2], [count, 2], [size, 4], [at, 4], [0, 2])]);
}

function makeItems(card, { unpack, choose }) {
  const STEP = 10;
  const ARRAYS = { Int8Array, Int16Array, Int32Array, Float32Array };
  const packed = JSON.parse(card.querySelector("script.packed").textContent);
  const { noun, fields, lists, reasons } = packed;
  const [list, part, find] = ["list", "part", "find"].map((name) => card.querySelector(`[name=${name}]`));
  const [table, found, more] = ["table", ".found", ".more"].map((name) => card.querySelector(name));
  const state = { by: null, descending: true, rows: STEP };
  const items = { noun, fields, reasons, packed };

  async function load() {
    const column = async ([type, text]) => new ARRAYS[type]((await unpack(text)).buffer);
    items.ids = JSON.parse(new TextDecoder().decode(await unpack(packed.ids)));
    items.part = await column(packed.part);
    for (const field of Object.values(fields)) field.values = await column(field.values);
    items.edges = packed.edges && await column(packed.edges);
    items.label = ({ names, values, digits }, item) => {
      const value = values[item];
      if (names) return value < 0 ? "–" : names[value];
      return Number.isNaN(value) ? "–" : format(value, digits);
    };
    items.first = order()[0];
  }
  let loading;
  items.loaded = () => (loading ??= load());

  const current = () => lists[list.value];
  const why = (item) => (reasons[item] ?? []).join("; ");
  const columns = () => current().fields.map((key) => fields[key]);
  const isNumber = (field) => !field.names;

  // By value, unknown ones last; equal ones stay in the order of the data.
  function order() {
    const sought = find.value.trim().toLowerCase();
    const wanted = [];
    for (let item = 0; item < items.ids.length; item++) {
      if ((part.value === "" || items.part[item] === Number(part.value)) && (!sought || items.ids[item].toLowerCase().includes(sought))) wanted.push(item);
    }
    const [by, sign] = state.by === null ? [fields[current().by], current().descending ? -1 : 1] : [state.by, state.descending ? -1 : 1];
    if (by === "id") {
      const { compare } = new Intl.Collator(undefined, { numeric: true });
      return wanted.sort((a, b) => sign * compare(items.ids[a], items.ids[b]));
    }
    const value = (item) => (by.names && by.values[item] < 0 ? NaN : by.values[item]);
    const rank = (item) => Number(Number.isNaN(value(item)));
    return wanted.sort((a, b) => rank(a) - rank(b) || sign * (value(a) - value(b)) || a - b);
  }

  function head() {
    const cell = (name, field) => {
      const [made, button] = [element("th"), element("button", name, "sort")];
      made.scope = "col";
      if (field !== "id" && isNumber(field)) made.classList.add("number");
      if (state.by === field) made.ariaSort = state.descending ? "descending" : "ascending";
      else if (state.by === null && field === fields[current().by]) made.ariaSort = current().descending ? "descending" : "ascending";
      button.type = "button";
      button.addEventListener("click", () => {
        const down = made.ariaSort ? made.ariaSort === "ascending" : field !== "id";
        Object.assign(state, { by: field, descending: down, rows: STEP });
        show();
        table.querySelectorAll(".sort")[[...made.parentElement.cells].indexOf(made)]?.focus();
      });
      made.append(button);
      return made;
    };
    const row = element("tr");
    row.append(cell(noun, "id"), ...columns().map((field) => cell(field.name, field)));
    if (Object.keys(reasons).length) row.append(Object.assign(element("th", "why"), { scope: "col" }));
    table.tHead.replaceChildren(row);
  }

  function line(item) {
    const row = element("tr");
    const [name, pick] = [element("th", undefined, "id"), element("button", cut(visible(items.ids[item]), 60), "pick")];
    name.scope = "row";
    pick.type = "button";
    pick.title = `Show ${visible(items.ids[item])} and its neighbours`;
    pick.addEventListener("click", () => choose(item));
    name.append(...(packed.edges ? [pick] : [cut(visible(items.ids[item]), 60)]));
    row.append(name, ...columns().map((field) => {
      const text = visible(items.label(field, item));
      const cell = element("td", cut(text, 60), isNumber(field) ? "number" : "");
      if (text.length > 60) cell.title = text;
      return cell;
    }));
    if (Object.keys(reasons).length) row.append(element("td", why(item) || "–", "why"));
    return row;
  }

  function show() {
    const all = order();
    head();
    table.tBodies[0].replaceChildren(...all.slice(0, state.rows).map(line));
    more.hidden = all.length <= state.rows;
    found.textContent = all.length ? `${Math.min(state.rows, all.length).toLocaleString("en")} of ${all.length.toLocaleString("en")} shown.` : "Nothing is found.";
  }

  // What is saved: all rows of the list as it is sorted and searched, with all digits.
  function rows() {
    const known = (field, item) => {
      const value = field.values[item];
      if (field.names) return value < 0 ? null : field.names[value];
      return Number.isNaN(value) ? null : field.values instanceof Float32Array ? Number(value.toPrecision(9)) : value;
    };
    const reasoned = Object.keys(reasons).length;
    const head = ["rank", noun, ...columns().map(({ name }) => name), "part", ...(reasoned ? ["why"] : [])];
    return [head, ...order().map((item, place) => [
      place + 1, items.ids[item], ...columns().map((field) => known(field, item)),
      packed.parts[items.part[item]] ?? null, ...(reasoned ? [why(item)] : []),
    ])];
  }
  const quoted = (value) => (value === null ? "" : /[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value));
  card.querySelector(".csv").addEventListener("click", async () => {
    await items.loaded();
    // The mark at the start tells spreadsheets that the text is UTF-8.
    save("list.csv", `\ufeff${rows().map((row) => row.map(quoted).join(",")).join("\n")}\n`, "text/csv");
  });
  card.querySelector(".xlsx").addEventListener("click", async () => {
    await items.loaded();
    save("list.xlsx", workbook(rows()), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet");
  });

  const again = async () => { await items.loaded(); show(); };
  list.addEventListener("change", () => {
    Object.assign(state, { by: null, rows: STEP });
    const wanted = current().part === null ? "" : String(current().part);
    if ([...part.options].some(({ value }) => value === wanted)) part.value = wanted;
    again();
  });
  for (const [box, event] of [[part, "change"], [find, "input"]]) {
    box.addEventListener(event, () => { state.rows = STEP; again(); });
  }
  more.addEventListener("click", () => { state.rows *= 4; again(); });
  items.show = again;
  return items;
}

// The chosen node, its neighbours on a ring, theirs on a second one.
function makeAround(figure, items, { role, twin, redraw }) {
  const NEAR = 36, FAR = 60;
  const [form, input, found, why, options] = ["form", "input", ".found", ".why", "datalist"].map((name) => figure.querySelector(name));
  let [chosen, neighbours, shown] = [-1, null, []];

  function prepare() {
    neighbours = new Map();
    for (let at = 0; at < items.edges.length; at += 2) {
      for (const [from, to] of [[0, 1], [1, 0]]) {
        const [a, b] = [items.edges[at + from], items.edges[at + to]];
        if (!neighbours.has(a)) neighbours.set(a, []);
        neighbours.get(a).push(b);
      }
    }
    if (chosen < 0) chosen = neighbours.has(items.first) ? items.first : items.edges[0];
  }

  const details = (item) => [`${items.noun} ${cut(visible(items.ids[item]), 60)}`,
    ...items.packed.lists[0].fields.map((key) => items.fields[key]).filter(({ values, names }) => (names ? values[item] >= 0 : !Number.isNaN(values[item])))
      .map((field) => `${field.name}: ${cut(visible(items.label(field, item)), 40)}`)];

  function places() {
    const around = (neighbours.get(chosen) ?? []).slice(0, NEAR);
    const place = new Map([[chosen, [0, 0]]]);
    const ring = (item, turn, far) => place.set(item, [far * Math.cos(2 * Math.PI * turn), far * Math.sin(2 * Math.PI * turn)]);
    around.forEach((item, index) => ring(item, index / around.length, 1));
    const share = Math.floor(FAR / Math.max(around.length, 1));
    around.forEach((item, index) => {
      const outer = (neighbours.get(item) ?? []).filter((other) => !place.has(other)).slice(0, share);
      outer.forEach((other, number) => ring(other, (index + (number + 0.5) / outer.length - 0.5) / around.length, 1.8));
    });
    return place;
  }

  async function draw() {
    await items.loaded();
    if (!neighbours) prepare();
    const [place, { colour, colours, neutral }] = [places(), items.packed];
    shown = [...place.keys()];
    const field = items.fields[colour];
    const [x, y] = [[], []];
    for (const a of shown) {
      for (const b of neighbours.get(a) ?? []) {
        if (a < b && place.has(b)) {
          x.push(place.get(a)[0], place.get(b)[0], null);
          y.push(place.get(a)[1], place.get(b)[1], null);
        }
      }
    }
    const known = (item) => items.part[item] >= 0;
    const ramp = () => {
      const values = shown.map((item) => field.values[item]);
      return { color: values, colorscale: [[0, role("scale-low")], [0.5, role("scale-middle")], [1, role("scale-high")]], showscale: true, colorbar: { thickness: 10, outlinewidth: 0, title: { text: plain(field.name, 24), font: { size: 12 } } } };
    };
    const shade = (item) => twin(field.values[item] < 0 ? neutral : colours[field.values[item] % colours.length]);
    const marker = {
      size: shown.map((item) => (item === chosen ? 22 : 12)), symbol: shown.map((item) => (known(item) ? "circle" : "circle-open")),
      line: { width: 2, color: role("surface") }, ...(field.names ? { color: shown.map(shade) } : ramp()),
    };
    if (field.names) marker.line = { width: 2.5, color: shown.map((item) => (known(item) ? role("surface") : shade(item))) };
    const named = shown.length <= 40;
    const texts = shown.map((item) => details(item).map((text) => plain(text, 80)).join("<br>"));
    const present = field.names ? [...new Set(shown.map((item) => field.values[item]))].filter((value) => value >= 0).sort((a, b) => a - b).slice(0, 12) : [];
    const count = (neighbours.get(chosen) ?? []).length;
    figure.querySelector(".plot").ariaLabel = `The neighbours of ${items.noun} ${visible(items.ids[chosen])}: ${(neighbours.get(chosen) ?? []).slice(0, 10).map((item) => visible(items.ids[item])).join(", ")}`;
    found.textContent = `${visible(items.ids[chosen])}: ${count.toLocaleString("en")} ${count === 1 ? "neighbour" : "neighbours"}${count > NEAR ? `, ${NEAR} of them drawn` : ""}.`;
    why.replaceChildren(...[...details(chosen).slice(1), ...(items.reasons[chosen] ?? [])].map((text) => element("li", text)));
    const axis = { showticklabels: false, showgrid: false, zeroline: false, range: [-2.1, 2.1] };
    return {
      data: [
        { type: "scatter", mode: "lines", x, y, line: { color: twin(neutral), width: 1 }, opacity: 0.6, hoverinfo: "skip", showlegend: false },
        {
          type: "scatter", mode: named ? "markers+text" : "markers", x: shown.map((item) => place.get(item)[0]), y: shown.map((item) => place.get(item)[1]),
          marker, hoverinfo: "text", hovertext: texts, text: shown.map((item) => plain(visible(items.ids[item]), 14)), textposition: "top center",
          textfont: { size: 11, color: role("soft") }, showlegend: false, cliponaxis: false,
        },
        ...present.map((value) => ({ type: "scatter", mode: "markers", x: [null], y: [null], name: plain(visible(field.names[value]), 24), marker: { size: 10, color: twin(colours[value % colours.length]) }, hoverinfo: "skip" })),
      ],
      layout: { xaxis: axis, yaxis: { ...axis, scaleanchor: "x" }, margin: { l: 8, r: 8, t: 24, b: present.length ? 40 : 8 }, dragmode: false },
    };
  }

  async function choose(item) {
    chosen = item;
    input.value = items.ids[item];
    await redraw(figure);
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await items.loaded();
    const item = [input.value, input.value.trim()].map((name) => items.ids.indexOf(name)).find((place) => place >= 0) ?? -1;
    if (item >= 0) await choose(item);
    else found.textContent = `No ${items.noun} of the list is called ${cut(visible(input.value), 60) || "nothing"}.`;
  });
  input.addEventListener("input", async () => {
    await items.loaded();
    const text = input.value.toLowerCase();
    const near = text ? items.ids.filter((id) => id.toLowerCase().startsWith(text)).slice(0, 8) : [];
    options.replaceChildren(...near.map((id) => Object.assign(element("option"), { value: id })));
  });
  const attach = (plot) => plot.on("plotly_click", ({ points: [{ curveNumber, pointNumber }] }) => { if (curveNumber === 1) choose(shown[pointNumber]); });
  return { draw, choose, attach };
}

function makeThreshold(figure, { role, redraw }) {
  const { items, classes } = JSON.parse(figure.querySelector("script.steps").textContent);
  const box = (name) => figure.querySelector(`[name=${name}]`);
  const [which, miss, alarm, at, counts] = [box("class"), box("miss"), box("alarm"), box("at"), figure.querySelector(".counts")];
  const steps = () => classes[which?.value ?? 0];
  const cost = ({ positives, hits, alarms }, step) => Number(miss.value) * (positives - hits[step]) + Number(alarm.value) * alarms[step];
  const whole = (value) => format(Math.round(1000 * value) / 1000, Math.abs(value) < 100 ? 2 : 0);

  function cheapest() {
    const all = steps();
    let best = 0;
    for (let step = 1; step < all.at.length; step++) if (cost(all, step) < cost(all, best)) best = step;
    at.value = best;
  }

  function tell() {
    const all = steps();
    const step = Number(at.value);
    const [hits, alarms] = [all.hits[step], all.alarms[step]];
    const text = all.at[step] === null ? "none" : `from ${all.at[step].toFixed(3)} on`;
    at.ariaValueText = `${text}, ${hits + alarms} ${items}`;
    const percent = (part, of) => (of ? ` (${Math.round((100 * part) / of)}\u00a0%)` : "");
    const told = {
      threshold: all.at[step] === null ? "none" : all.at[step].toFixed(3),
      [`${items} to act on`]: `${(hits + alarms).toLocaleString("en")} of ${all.items.toLocaleString("en")}`,
      found: `${hits.toLocaleString("en")}${percent(hits, all.positives)}`,
      missed: (all.positives - hits).toLocaleString("en"),
      "false alarms": `${alarms.toLocaleString("en")}${percent(alarms, hits + alarms)}`,
      "rightly left alone": (all.items - all.positives - alarms).toLocaleString("en"),
      cost: whole(cost(all, step)),
    };
    counts.replaceChildren(...Object.entries(told).map(([name, value]) => {
      const row = element("div");
      row.append(element("dt", name), element("dd", value));
      return row;
    }));
  }

  function draw() {
    const all = steps();
    const acted = all.hits.map((hits, step) => hits + all.alarms[step]);
    const y = acted.map((_, step) => cost(all, step));
    const step = Number(at.value);
    const hover = acted.map((count, place) => `${all.at[place] === null ? "none" : `from ${all.at[place].toFixed(3)} on`}: ${count}<br>cost ${whole(y[place])}`);
    return {
      data: [
        { type: "scatter", mode: "lines", x: acted, y, line: { color: role("deep"), width: 2.5 }, hoverinfo: "text", hovertext: hover, showlegend: false },
        { type: "scatter", mode: "markers", x: [acted[step]], y: [y[step]], marker: { size: 13, color: role("accent") }, hoverinfo: "skip", showlegend: false },
      ],
      layout: {
        xaxis: { title: { text: `${items} to act on, from the top of the list` }, zeroline: false, rangemode: "tozero" }, yaxis: { title: { text: "cost" }, rangemode: "tozero", zeroline: false },
        shapes: [{ type: "line", x0: acted[step], x1: acted[step], y0: 0, y1: 1, yref: "paper", line: { color: role("soft"), width: 1, dash: "dot" } }],
        margin: { t: 24 },
      },
    };
  }

  const change = () => { tell(); return redraw(figure); };
  function start() {
    const { positives, items: total, at: all } = steps();
    at.max = all.length - 1;
    miss.value = Math.max(1, Math.round((total - positives) / positives)); // both kinds of error weigh the same in all
    cheapest();
    tell();
  }
  start();
  at.addEventListener("input", change);
  for (const input of [miss, alarm]) input.addEventListener("input", change);
  figure.querySelector(".cheapest").addEventListener("click", () => { cheapest(); change(); });
  which?.addEventListener("change", () => { start(); change(); });
  return { draw };
}
