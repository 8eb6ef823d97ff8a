"use strict";
// Every item of a run as a point: coloured by a switch, found by its id, described when pointed at.
function makeExplorer(card, { role, twin, unpack, redraw }) {
  const LEGEND = 12; // a longer legend would leave no room for the points
  const ARRAYS = { Int8Array, Int16Array, Uint16Array, Int32Array };
  const PARTS = { "-1": "none", 0: "training", 1: "validation", 2: "test" };
  const packed = JSON.parse(card.querySelector("script.packed").textContent);
  const { noun, size, classes } = packed;
  const state = { colour: "y", chosen: -1, zoom: {} };
  let ids, columns, order, views;

  const number = (value) => value.toLocaleString("en");
  const cut = (text, limit) => (text.length > limit ? `${text.slice(0, limit - 1)}…` : text);
  // Plotly reads markup, mathematics and templates in text; see plain() in figures.py.
  const plain = (text, limit) =>
    cut(text, limit).replace(/[&<>$%]/g, (character) => `&#${character.charCodeAt(0)};`);
  const className = (index) => (index < 0 ? "unknown" : classes[index]);

  async function column([type, text]) {
    return new ARRAYS[type]((await unpack(text)).buffer);
  }

  async function unpackAll() {
    ids = JSON.parse(new TextDecoder().decode(await unpack(packed.ids)));
    columns = {};
    for (const [name, source] of Object.entries(packed.columns)) columns[name] = await column(source);
    views = {};
    for (const [name, { title, corner, unit, absent, x, y, edges }] of Object.entries(packed.views)) {
      const [across, up] = [await column(x), await column(y)];
      const place = (steps, start) => Float64Array.from(steps, (step) => (step === absent ? NaN : start + step * unit));
      views[name] = { title, x: place(across, corner[0]), y: place(up, corner[1]), edges: edges && await column(edges) };
      views[name].full = [range(views[name].x), range(views[name].y)];
    }
    order = shuffled(ids.length);
  }
  let loading;
  const loaded = () => (loading ??= unpackAll());

  function range(values) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const pad = 0.04 * (high - low) || 1;
    return low <= high ? [low - pad, high + pad] : [0, 1];
  }

  // The same order at every opening, so that two people see the same points.
  function shuffled(count) {
    const places = Uint32Array.from({ length: count }, (_, index) => index);
    let seed = 1;
    for (let last = count - 1; last > 0; last--) {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      const other = Math.floor((seed / 4294967296) * (last + 1));
      [places[last], places[other]] = [places[other], places[last]];
    }
    return places;
  }

  // As many items of the window as can be drawn, and the chosen one in any case.
  function drawn(name) {
    const { x, y, full } = views[name];
    const [[left, right], [low, high]] = state.zoom[name] ?? full;
    const found = [];
    for (const item of order) {
      if (found.length === packed.mostDrawn) break;
      if (x[item] >= left && x[item] <= right && y[item] >= low && y[item] <= high) found.push(item);
    }
    if (state.chosen >= 0 && !found.includes(state.chosen)) found.push(state.chosen);
    return found;
  }

  const facts = (item) => [
    [noun, ids[item]],
    ["true class", className(columns.y[item])],
    ["prediction", className(columns.prediction[item])],
    ["confidence", (columns.confidence[item] / 65535).toFixed(3)],
    [size, number(columns.size[item])],
    ...(columns.edges ? [["edges", number(columns.edges[item])]] : []),
    ["part", PARTS[columns.part[item]]],
  ];
  const hover = (item) =>
    facts(item).map(([name, value], row) => (row ? `${name}: ${plain(value, 60)}` : `<b>${plain(value, 60)}</b>`)).join("<br>");

  function points(name, items, more) {
    const { x, y } = views[name];
    const many = items.total > 1500;
    return {
      type: "scatter", mode: "markers", x: items.map((item) => x[item]), y: items.map((item) => y[item]),
      customdata: items, hovertext: items.map(hover), hoverinfo: "text", ...more,
      marker: { size: many ? 6 : 9, opacity: many ? 0.75 : 0.9, line: { width: many ? 0.5 : 1, color: role("surface") }, ...more.marker },
    };
  }

  function byClass(name, items) {
    const groups = new Map();
    for (const item of items) {
      const value = columns[state.colour][item];
      if (!groups.has(value)) groups.set(value, []);
      groups.get(value).push(item);
    }
    const inLegend = new Set([...groups.keys()].sort((a, b) => groups.get(b).length - groups.get(a).length).slice(0, LEGEND));
    const { colours, symbols, neutral } = packed;
    return [...groups.keys()].sort((a, b) => (a < 0) - (b < 0) || a - b).map((value) => points(
      name, Object.assign(groups.get(value), { total: items.length }), {
        name: plain(className(value), 24), showlegend: inLegend.has(value),
        marker: {
          color: twin(value < 0 ? neutral : colours[value % colours.length]),
          symbol: value < 0 ? "circle-open" : symbols[Math.floor(value / colours.length) % symbols.length],
        },
      }));
  }

  function bySize(name, items) {
    const largest = columns.size.reduce((most, value) => Math.max(most, value), 1);
    const ticks = [];
    for (let tick = 1; tick <= largest; tick *= largest > 1000 ? 10 : largest > 30 ? 4 : 2) ticks.push(tick);
    const scale = (value) => Math.log2(1 + value);
    return [points(name, Object.assign(items, { total: items.length }), {
      showlegend: false,
      marker: {
        color: items.map((item) => scale(columns.size[item])), cmin: 0, cmax: scale(largest),
        colorscale: ["low", "middle", "high"].map((end, step) => [step / 2, role(`scale-${end}`)]),
        colorbar: {
          orientation: "h", x: 0, xanchor: "left", y: 0, yref: "container", yanchor: "bottom", thickness: 10, len: 0.6, outlinewidth: 0,
          title: { text: size, side: "top", font: { size: 12 } }, tickvals: [0, ...ticks.map(scale)], ticktext: ["0", ...ticks.map(number)],
        },
      },
    })];
  }

  function lines(name) {
    const { x, y, edges } = views[name];
    if (!edges?.length) return [];
    const [across, up] = [[], []];
    for (let end = 0; end < edges.length; end += 2) {
      across.push(x[edges[end]], x[edges[end + 1]], null);
      up.push(y[edges[end]], y[edges[end + 1]], null);
    }
    const line = { color: twin(packed.neutral), width: edges.length > 2000 ? 0.4 : 0.9 };
    return [{ type: "scatter", mode: "lines", x: across, y: up, line, opacity: 0.5, hoverinfo: "skip", showlegend: false }];
  }

  function ring(name) {
    if (state.chosen < 0) return [];
    const { x, y } = views[name];
    const marker = { symbol: "circle-open", size: 22, color: role("ink"), line: { width: 3, color: role("ink") } };
    return [{ type: "scatter", mode: "markers", x: [x[state.chosen]], y: [y[state.chosen]], marker, hoverinfo: "skip", showlegend: false, name: "found" }];
  }

  async function figure(name) {
    await loaded();
    const { title, full } = views[name];
    const items = drawn(name);
    const by = { y: "class", prediction: "prediction", size }[state.colour];
    const axis = { showticklabels: false, showgrid: false, zeroline: false };
    return {
      data: [...lines(name), ...(state.colour === "size" ? bySize(name, items) : byClass(name, items)), ...ring(name)],
      layout: {
        title: { text: `${title}, coloured by ${by}` },
        xaxis: { ...axis, range: full[0] }, yaxis: { ...axis, range: full[1], scaleanchor: "x" },
      },
    };
  }

  // What a plot tells the explorer, once it is there.
  function attach(name, plot) {
    if (plot.dataset.attached) return;
    plot.dataset.attached = "true";
    plot.on("plotly_click", ({ points: [point] }) => { if (point.customdata !== undefined) choose(point.customdata); });
    plot.on("plotly_relayout", () => {
      if (ids.length <= packed.mostDrawn) return;
      const { xaxis, yaxis } = plot._fullLayout;
      state.zoom[name] = [xaxis.range, yaxis.range];
      redraw(name);
    });
  }

  const input = card.querySelector(".find input");
  const answer = card.querySelector(".found");
  const details = card.querySelector(".item");

  async function choose(item) {
    state.chosen = item;
    details.replaceChildren(...facts(item).map(([name, value]) => {
      const [row, term, text] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
      term.textContent = name;
      text.textContent = cut(value, 200);
      text.title = value;
      row.append(term, text);
      return row;
    }));
    details.hidden = false;
    for (const name of Object.keys(views)) await redraw(name);
  }

  const like = (text, most) => {
    const [found, start] = [[], text.toLowerCase()];
    for (let item = 0; item < ids.length && found.length < most; item++) {
      if (ids[item].toLowerCase().startsWith(start)) found.push(item);
    }
    return found;
  };

  async function find(text) {
    await loaded();
    const item = ids.indexOf(text);
    if (item >= 0) {
      answer.textContent = `Found ${noun} ${cut(text, 60)}: ringed below.`;
      await choose(item);
      return;
    }
    const near = text ? like(text, 3).map((other) => cut(ids[other], 30)) : [];
    answer.textContent = `No ${noun} is called ${cut(text, 60) || "nothing"}.${near.length ? ` There is ${near.join(", ")}.` : ""}`;
  }

  card.querySelector(".find").addEventListener("submit", (event) => {
    event.preventDefault();
    find(input.value.trim());
  });
  input.addEventListener("input", async () => {
    await loaded();
    const text = input.value.trim();
    card.querySelector("datalist").replaceChildren(...(text ? like(text, 8) : []).map((item) => {
      const option = document.createElement("option");
      option.value = ids[item];
      return option;
    }));
    if (text && ids.includes(text)) find(text);
  });
  for (const choice of card.querySelectorAll(".switch input")) {
    choice.addEventListener("change", async () => {
      state.colour = choice.value;
      await loaded();
      for (const name of Object.keys(views)) await redraw(name);
    });
  }
  return { figure, attach };
}
