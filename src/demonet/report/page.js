(() => {
  const root = document.documentElement;
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const darkTwin = JSON.parse(document.getElementById("dark-twin").textContent);
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);

  // A colour role of the style sheet, as the theme of the moment has it.
  const probe = document.head.appendChild(document.createElement("i"));
  const role = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  // What all figures share. Figures themselves carry data, names and palette colours only.
  function themeTemplate() {
    const [ink, soft, line, surface, accent] = ["ink", "soft", "line", "surface", "accent"].map(role);
    const axis = {
      gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, ticks: "",
      tickfont: { color: soft, size: 12 }, title: { font: { color: soft, size: 13 }, standoff: 10 },
    };
    return {
      layout: {
        font: { family: getComputedStyle(document.body).fontFamily, color: ink, size: 13 },
        title: {
          font: { size: 14, color: ink }, pad: { l: 17, t: 14 },
          x: 0, xref: "container", xanchor: "left", y: 1, yref: "container", yanchor: "top",
        },
        paper_bgcolor: surface, plot_bgcolor: surface,
        margin: { l: 24, r: 24, t: 52, b: 24 },
        dragmode: touch ? false : "zoom",
        xaxis: axis, yaxis: axis,
        legend: { orientation: "h", x: 0, xref: "container", xanchor: "left", y: 0, yref: "container", yanchor: "bottom", font: { size: 12.5 } },
        hoverlabel: { bgcolor: surface, bordercolor: soft, font: { color: ink, size: 13 }, align: "left", namelength: -1 },
        modebar: { bgcolor: "transparent", color: soft, activecolor: accent },
        hovermode: "closest",
        uirevision: "theme",
        colorscale: { sequential: [[0, role("pale")], [1, role("deep")]] },
      },
      data: {
        bar: [{ error_x: { color: ink }, marker: { line: { width: 0 } } }],
        scatter: [{ marker: { line: { color: surface, width: 1 } } }],
      },
    };
  }

  // A figure's JSON, its colours replaced by their dark twins in the dark. Only keys that hold a colour are touched.
  const twin = (colour) => (isDark() && Object.hasOwn(darkTwin, colour) ? darkTwin[colour] : colour);
  const readFigure = (source) =>
    JSON.parse(source, (key, value) => (key.endsWith("color") && typeof value === "string" ? twin(value) : value));

  // The buttons are listed one by one: plotly's own choice includes one that sends the data to its makers' server.
  // Under a finger, dragging must scroll the page, so there only saving is left.
  const touch = matchMedia("(pointer: coarse), (max-width: 30rem)").matches;
  const config = (name) => ({
    responsive: true,
    displaylogo: false,
    displayModeBar: true,
    modeBarButtons: touch ? [["toImage"]] : [["zoom2d", "pan2d", "resetScale2d"], ["toImage"]],
    toImageButtonOptions: { format: "svg", filename: name },
  });

  // On a narrow screen the panels of a chart stand one below another, each with its own names and numbers.
  const narrow = matchMedia("(max-width: 45rem)");
  function arrange(plot, layout) {
    const { panels, panel, gap, around, below } = layout.meta ?? {};
    if (!panels) return;
    plot.dataset.height ??= plot.style.height;
    plot.style.height = narrow.matches ? `${panels * (panel + gap) + around}px` : plot.dataset.height;
    if (!narrow.matches) return;
    Object.assign(layout.grid, { rows: panels, columns: 1 });
    layout.margin.b = below;
    for (const [name, axis] of Object.entries(layout)) {
      if (name.startsWith("yaxis") && axis.ticktext) axis.showticklabels = true;
    }
  }

  async function draw(figure) {
    if (figure.closest("details:not([open])")) return; // drawn when it is opened
    const live = makers[figure.dataset.draw];
    const plot = figure.querySelector(".plot");
    const { data, layout } = live ? await live.draw() : readFigure(figure.querySelector("script.figure").textContent);
    delete layout.height; // the page has set it aside; plotly then fills what there is
    arrange(plot, layout);
    const heading = figure.closest("section").querySelector("h2, h3")?.textContent ?? "figure";
    const name = heading.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").toLowerCase();
    await Plotly.react(plot, data, { ...layout, template: themeTemplate() }, config(name));
    if (live?.attach && !plot.dataset.attached) live.attach(plot);
    plot.dataset.attached = "true";
  }

  async function unpack(text) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser cannot unpack the plotting library (it has no DecompressionStream); a newer one can");
    }
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function loadPlotly() {
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(await unpack(document.getElementById("plotly").textContent));
    document.head.append(script);
    if (typeof Plotly === "undefined") throw new Error("the plotting library did not start");
  }

  function explain(figure, error) {
    const plot = figure.querySelector(".plot");
    const notice = document.createElement("p");
    notice.className = "notice";
    notice.textContent = `This plot could not be drawn: ${error.message}. What it shows: ${plot.getAttribute("aria-label")}`;
    plot.replaceChildren(notice);
    plot.style.height = "auto";
  }

  const figures = [...document.querySelectorAll("figure")];
  async function drawAll() {
    for (const figure of figures) {
      await draw(figure).catch((error) => explain(figure, error));
    }
  }

  let ready = false;
  const redrawOne = (figure) => (ready ? draw(figure).catch((error) => explain(figure, error)) : undefined);
  const makers = {};
  const part = (name) => document.querySelector(`.${name}`);
  const items = part("items") && makeItems(part("items"), {
    unpack,
    choose: async (item) => {
      part("around").scrollIntoView({ block: "center" });
      await makers.around.choose(item);
    },
  });
  if (part("around")) makers.around = makeAround(part("around"), items, { role, twin, redraw: redrawOne });
  if (part("threshold")) makers.threshold = makeThreshold(part("threshold"), { role, redraw: redrawOne });
  items?.show();

  const copy = async (text) => navigator.clipboard.writeText(text);

  for (const button of document.querySelectorAll("button.copy")) {
    const table = JSON.parse(button.closest(".card").querySelector("script.tsv").textContent);
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", async () => {
      button.textContent = await copy(table).then(() => "Copied", () => "Copying was refused");
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  for (const fold of document.querySelectorAll("details.fold")) {
    fold.addEventListener("toggle", () => {
      if (fold.open) for (const figure of fold.querySelectorAll("figure")) redrawOne(figure);
    });
  }

  const redraw = () => ready && drawAll();
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    redraw();
  });
  systemDark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);

  if (figures.length) {
    loadPlotly().then(
      () => { ready = true; return drawAll(); },
      (error) => figures.forEach((figure) => explain(figure, error)),
    ).finally(() => { root.dataset.drawn = "true"; });
  }

  // A click on the head of a column sorts the rows below it: best first, then the other way round, then as they were.
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  const key = (row, column) => {
    const cell = row.cells[column];
    if (!cell.classList.contains("number")) return cell.textContent.trim();
    return "order" in cell.dataset ? Number(cell.dataset.order) : null;
  };

  // What has no number stays below, whichever way the others go.
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const groups = [...table.tBodies].map((body) => ({ body, rows: [...body.rows].filter((row) => !row.classList.contains("group")) }));

    heads.forEach((head, column) => {
      const first = head.classList.contains("number") && head.dataset.best !== "min" ? "descending" : "ascending";
      const second = first === "ascending" ? "descending" : "ascending";
      head.querySelector(".sort").addEventListener("click", () => {
        const next = { [first]: second, [second]: "" }[head.getAttribute("aria-sort")] ?? first;
        for (const other of heads) other.removeAttribute("aria-sort");
        if (next) head.setAttribute("aria-sort", next);
        const sign = next === "descending" ? -1 : 1;
        for (const { body, rows } of groups) {
          body.append(...(next ? [...rows].sort((a, b) => compare(key(a, column), key(b, column), sign)) : rows));
        }
      });
    });
  }
})();
