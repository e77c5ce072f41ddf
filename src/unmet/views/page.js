// What every page does without a network: tables sort and download, figures fit the paper when printed.
(() => {
  const number = (text) => {
    const found = text.replace(/\u2212/g, "-").replace(/,/g, "").match(/^[^\d-]{0,3}?(-?\d+(\.\d+)?)\s*(MWh|kWh|%)?/);
    return found ? parseFloat(found[1]) * (found[3] === "MWh" ? 1000 : 1) : null;
  };
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = (cell.firstChild ? cell.firstChild.textContent : "").trim();
    return { text, value: number(text) };
  };
  const sort = (table, column, head) => {
    const up = head.getAttribute("aria-sort") === "descending";
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, ...key(row, column) }));
    const numeric = column > 0 && rows.every((r) => r.value !== null || r.text === "" || r.text === "-");
    rows.sort((a, b) => (numeric ? (a.value ?? -Infinity) - (b.value ?? -Infinity)
      : a.text.localeCompare(b.text, undefined, { numeric: true })) * (up ? 1 : -1));
    rows.forEach((r) => body.appendChild(r.row));
    head.closest("tr").querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
  };
  const csv = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => {
    const parts = [...cell.childNodes].map((node) => node.textContent.trim()).filter(Boolean);
    return `"${parts.join(" ").replace(/"/g, '""')}"`;
  }).join(",")).join("\r\n");
  document.querySelectorAll("table[data-file]").forEach((table) => {
    table.querySelectorAll("thead th").forEach((head, column) => {
      if (!head.textContent.trim() || table.tBodies[0].querySelector(`td:nth-child(${column + 1}) .bar`)) return;
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sort(table, column, head));
      head.replaceChildren(button);
    });
    const after = table.parentElement.parentElement.querySelector(":scope > .on-screen");
    if (after || !table.tBodies[0].rows.length) return;
    const line = document.createElement("p");
    line.className = "on-screen";
    const link = document.createElement("button");
    link.type = "button";
    link.className = "download";
    link.textContent = "Download this table (CSV)";
    link.addEventListener("click", () => {
      const anchor = document.createElement("a");
      anchor.href = URL.createObjectURL(new Blob(["\ufeff", csv(table)], { type: "text/csv" }));
      anchor.download = table.dataset.file;
      anchor.click();
      URL.revokeObjectURL(anchor.href);
    });
    line.append(link);
    table.parentElement.insertAdjacentElement("afterend", line);
  });
  // A map is as high as its width makes it. On paper, figures are drawn wide, and the style sheet scales them down.
  const [LEAST, MOST, FRAME, PAPER_WIDTH] = [220, 760, 130, 1060];
  const plots = [...document.querySelectorAll(".js-plotly-plot")];
  const heights = new Map(plots.map((plot) => [plot, plot.layout.height ?? 420]));
  const height = (plot, width) => {
    const { xaxis, yaxis } = plot.layout;
    if (!yaxis || !yaxis.scaleanchor || !xaxis.range || !yaxis.range) return heights.get(plot);
    const [x, y] = [xaxis.range, yaxis.range].map(([low, high]) => high - low);
    const best = FRAME + ((width - 94) * y) / x;
    return Math.round(Math.min(Math.max(best, LEAST), MOST, heights.get(plot)));
  };
  const draw = (onPaper) => plots.forEach((plot) => {
    const width = onPaper ? PAPER_WIDTH : plot.parentElement.parentElement.clientWidth;
    if (!width) return;
    const tall = height(plot, width);
    plot.style.height = plot.parentElement.style.height = `${tall}px`; // Plotly wraps its figure in a box
    window.Plotly.relayout(plot, { width: onPaper ? width : null, height: tall, autosize: !onPaper });
  });
  if (plots.length) {
    const paper = window.matchMedia("print");
    draw(paper.matches);
    paper.addEventListener("change", () => draw(paper.matches));
    window.addEventListener("beforeprint", () => draw(true));
    window.addEventListener("afterprint", () => draw(false));
  }
})();
