// A click on the head of a column sorts the rows below it: best first, then the other way round, then as they were.
(() => {
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
