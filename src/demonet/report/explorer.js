"use strict";
// Every item of a run as a point: coloured by a switch, found by its id, described when pointed at. Few points are drawn
// one by one; many are painted as one picture, again for every zoom, so that a hundred thousand take no longer.
function makeExplorer(card, { role, twin, unpack, redraw }) {
  const LEGEND = 12; // a longer legend would leave no room for the points
  const REACH = 14; // pixels between the pointer and a point that it still means
  const ARRAYS = { Int8Array, Int16Array, Uint16Array, Int32Array, Float32Array };
  const packed = JSON.parse(card.querySelector("script.packed").textContent);
  const { noun, channels } = packed;
  const state = { colour: Object.keys(channels).find((name) => channels[name].colour), chosen: -1, zoom: {} };
  let ids, order, views;

  const number = (value) =>
    value.toLocaleString("en", Number.isInteger(value) ? {} : { maximumSignificantDigits: 4 }).replace("-", "−");
  const cut = (text, limit) => (text.length > limit ? `${text.slice(0, limit - 1)}…` : text);
  // Plotly reads markup, mathematics and templates in text; see plain() in figures.py.
  const plain = (text, limit) =>
    cut(text, limit).replace(/[&<>$%]/g, (character) => `&#${character.charCodeAt(0)};`);
  const channel = () => channels[state.colour];
  const nameOf = ({ names, missing }, index) => (index < 0 ? missing : names[index]);

  async function column([type, text]) {
    return new ARRAYS[type]((await unpack(text)).buffer);
  }

  async function unpackAll() {
    ids = JSON.parse(new TextDecoder().decode(await unpack(packed.ids)));
    for (const each of Object.values(channels)) {
      each.steps = await column(each.values);
      each.at = (item) => each.steps[item] * each.unit;
      if (!each.names) each.limit = limits(each);
    }
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

  // The values at the ends of a scale. A few outliers do not stretch a diverging one.
  function limits({ scale, steps, unit }) {
    const known = Float64Array.from(steps.filter((step) => !Number.isNaN(step)), (step) => step * unit).sort();
    if (!known.length) return [0, 1];
    if (scale === "log") return [0, Math.max(1, known.at(-1))];
    if (scale === "linear") return [known[0], known.at(-1) > known[0] ? known.at(-1) : known[0] + 1];
    const sizes = known.map(Math.abs).sort();
    const far = sizes[Math.floor(0.98 * (sizes.length - 1))] || sizes.at(-1) || 1;
    return [-far, far];
  }

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

  const window = (name) => state.zoom[name] ?? views[name].full;
  const painted = () => ids.length > packed.mostPoints;

  const facts = (item) => [
    [noun, ids[item]],
    ...Object.values(channels).filter((each) => each.term || each === channel()).map((each) => {
      const value = each.at(item);
      if (each.names) return [each.term || each.colour, nameOf(each, value)];
      return [each.term || each.colour, Number.isNaN(value) ? each.missing : each.unit < 1 ? value.toFixed(3) : number(value)];
    }),
  ];

  // Colours of the switch: of a name, or of a number between the ends of its scale.
  function scale(value) {
    const { scale: kind, limit: [low, high] } = channel();
    const place = kind === "log" ? Math.log2(1 + value) / Math.log2(1 + high) : (value - low) / (high - low);
    return Math.min(1, Math.max(0, place));
  }
  const stops = () => (channel().scale === "diverging"
    ? [packed.colours[0], packed.neutral, packed.colours[1]].map(twin)
    : ["low", "middle", "high"].map((end) => role(`scale-${end}`)));
  const rgb = (colour) => (colour.startsWith("#")
    ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) : colour.match(/[\d.]+/g).map(Number));
  const classColour = (index) => twin(index < 0 ? packed.neutral : packed.colours[index % packed.colours.length]);
  function colourOf() {
    const { names, at } = channel();
    if (names) {
      const colours = new Map([[-1, classColour(-1)], ...names.map((_, index) => [index, classColour(index)])]);
      return (item) => colours.get(at(item));
    }
    const ends = stops().map(rgb);
    const steps = Array.from({ length: 65 }, (_, step) => {
      const [from, to, part] = step < 32 ? [ends[0], ends[1], step / 32] : [ends[1], ends[2], (step - 32) / 32];
      return `rgb(${from.map((value, channel) => Math.round(value + part * (to[channel] - value))).join(", ")})`;
    });
    return (item) => (Number.isNaN(at(item)) ? classColour(-1) : steps[Math.round(64 * scale(at(item)))]);
  }

  const points = (name, items, more, marker) => ({
    type: "scatter", mode: "markers", hoverinfo: "none", ...more,
    // A picture has all the points: what is left is the legend's.
    x: painted() ? [null] : items.map((item) => views[name].x[item]),
    y: painted() ? [null] : items.map((item) => views[name].y[item]),
    marker: { size: 9, opacity: 0.9, line: { width: 1, color: role("surface") }, ...marker },
  });

  function byClass(name) {
    const groups = new Map();
    for (const item of order) {
      const value = channel().at(item);
      if (!groups.has(value)) groups.set(value, []);
      groups.get(value).push(item);
    }
    const frequent = [...groups.keys()].sort((a, b) => groups.get(b).length - groups.get(a).length).slice(0, LEGEND);
    const shape = (value) => packed.symbols[Math.floor(value / packed.colours.length) % packed.symbols.length];
    return [...groups.keys()].sort((a, b) => (a < 0) - (b < 0) || a - b).map((value) => points(
      name, groups.get(value),
      { name: plain(nameOf(channel(), value), 24), showlegend: frequent.includes(value) },
      { color: classColour(value), symbol: value < 0 || painted() ? "circle" : shape(value) }));
  }

  function byNumber(name) {
    const { at, scale: kind, steps, unit, limit: [smallest, largest] } = channel();
    const third = (largest - smallest) / 3;
    const power = 10 ** Math.floor(Math.log10(third));
    const apart = [1, 2, 5, 10].map((times) => times * power).find((step) => step >= third);
    const step = steps instanceof Float32Array || unit < 1 ? apart : Math.max(1, apart);
    let ticks = [];
    for (let times = Math.ceil(smallest / step); times * step <= largest; times++) ticks.push(Number((times * step).toPrecision(6)));
    if (kind === "log") {
      const step = largest > 1000 ? 10 : largest > 30 ? 4 : 2;
      ticks = [0];
      for (let tick = 1; tick <= largest; tick *= step) ticks.push(tick);
    }
    const items = [...order].filter((item) => !Number.isNaN(at(item)));
    const unknown = [...order].filter((item) => Number.isNaN(at(item)));
    const rest = unknown.length ? [points(name, unknown, { showlegend: false }, { color: classColour(-1) })] : [];
    return [...rest, points(name, items, { showlegend: false }, {
      color: painted() ? [0] : items.map((item) => scale(at(item))), cmin: 0, cmax: 1, showscale: true,
      colorscale: stops().map((colour, place) => [place / 2, colour]),
      colorbar: {
        orientation: "h", x: 0, xref: "container", xanchor: "left", y: 0, yref: "container", yanchor: "bottom",
        thickness: 10, len: 0.6, outlinewidth: 0, xpad: 16, ypad: 8,
        tickvals: ticks.map(scale), ticktext: ticks.map(number),
      },
    })];
  }

  // All points of the window in one picture that lies in the plane of the axes.
  function picture(name) {
    if (!painted()) return [];
    const [{ x, y }, [[left, right], [low, high]], colour] = [views[name], window(name), colourOf()];
    const dots = 1400 / Math.max(right - left, high - low);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.ceil((right - left) * dots), Math.ceil((high - low) * dots)];
    const brush = canvas.getContext("2d");
    brush.globalAlpha = 0.75;
    for (const item of order) {
      if (!(x[item] >= left && x[item] <= right && y[item] >= low && y[item] <= high)) continue;
      brush.fillStyle = colour(item);
      brush.beginPath();
      brush.arc((x[item] - left) * dots, (high - y[item]) * dots, 3.2, 0, 7);
      brush.fill();
    }
    const box = { xref: "x", yref: "y", x: left, y: high, sizex: right - left, sizey: high - low, sizing: "stretch" };
    return [{ source: canvas.toDataURL(), layer: "below", ...box }];
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
    const [{ title }, [across, up]] = [views[name], window(name)];
    const by = plain(channel().colour, 40);
    const axis = { showticklabels: false, showgrid: false, zeroline: false };
    return {
      data: [...lines(name), ...(channel().names ? byClass : byNumber)(name), ...ring(name)],
      layout: {
        title: { text: `${title} by ${by}` }, images: picture(name),
        xaxis: { ...axis, range: across }, yaxis: { ...axis, range: up, scaleanchor: "x" },
      },
    };
  }

  // The item nearest to the pointer, and where on the screen it is.
  function nearest(name, plot, event) {
    const area = plot.querySelector(".nsewdrag").getBoundingClientRect();
    const [[left, right], [low, high]] = [plot.layout.xaxis.range, plot.layout.yaxis.range];
    const [across, up] = [area.width / (right - left), area.height / (high - low)];
    const { x, y } = views[name];
    let [best, near] = [-1, REACH ** 2];
    for (let item = 0; item < ids.length; item++) {
      const far = (area.left + (x[item] - left) * across - event.clientX) ** 2 + (area.bottom - (y[item] - low) * up - event.clientY) ** 2;
      if (far < near) [best, near] = [item, far];
    }
    return { item: best, x: area.left + (x[best] - left) * across, y: area.bottom - (y[best] - low) * up };
  }

  // What a plot tells the explorer, once it is there.
  function attach(name, plot) {
    if (plot.dataset.attached) return;
    plot.dataset.attached = "true";
    const tip = plot.parentElement.appendChild(document.createElement("div"));
    tip.className = "tip";
    tip.hidden = true;
    plot.addEventListener("mousemove", (event) => {
      const { item, x, y } = nearest(name, plot, event);
      tip.hidden = item < 0 || event.buttons > 0;
      if (tip.hidden) return;
      tip.replaceChildren(...facts(item).map(([term, value], row) => {
        const line = document.createElement(row ? "div" : "b");
        line.textContent = row ? `${term}: ${cut(value, 60)}` : cut(value, 60);
        return line;
      }));
      const frame = plot.parentElement.getBoundingClientRect();
      const [across, down] = [x - frame.left, y - frame.top];
      const beside = across + 14 + tip.offsetWidth < frame.width ? across + 14 : across - 14 - tip.offsetWidth;
      tip.style.left = `${Math.max(4, beside)}px`;
      tip.style.top = `${Math.max(4, down - tip.offsetHeight / 2)}px`;
    });
    plot.addEventListener("mouseleave", () => { tip.hidden = true; });
    plot.addEventListener("click", (event) => {
      const { item } = nearest(name, plot, event);
      if (item >= 0) choose(item);
    });
    plot.on("plotly_relayout", () => {
      state.zoom[name] = [[...plot.layout.xaxis.range], [...plot.layout.yaxis.range]];
      if (painted()) redraw(name);
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
    const item = [text, text.trim()].map((name) => ids.indexOf(name)).find((place) => place >= 0) ?? -1;
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
    find(input.value);
  });
  input.addEventListener("input", async () => {
    await loaded();
    const text = input.value;
    card.querySelector("datalist").replaceChildren(...(text ? like(text, 8) : []).map((item) => {
      const option = document.createElement("option");
      option.value = ids[item];
      return option;
    }));
    if (text && ids.includes(text)) find(text);
  });
  for (const choice of card.querySelectorAll(".switch input, .switch select")) {
    choice.addEventListener("change", async () => {
      state.colour = choice.value;
      await loaded();
      for (const name of Object.keys(views)) await redraw(name);
    });
  }
  return { figure, attach };
}
