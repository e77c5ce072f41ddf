// The behaviour of every page, without a network: tables can be sorted and downloaded, and figures fit printed pages.
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
  // A cell that a spreadsheet would take for a formula starts with an apostrophe, as in the files of a run.
  const safe = (text) => (/^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+([.,]\d+)?$/.test(text) ? `'${text}` : text);
  const csv = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => {
    const parts = [...cell.childNodes].map((node) => node.textContent.trim()).filter(Boolean);
    return `"${safe(parts.join(" ")).replace(/"/g, '""')}"`;
  }).join(",")).join("\r\n");
  const save = (blob, name) => {
    const anchor = document.createElement("a");
    anchor.href = URL.createObjectURL(blob);
    anchor.download = name;
    anchor.click();
    URL.revokeObjectURL(anchor.href);
  };
  // Long tables are gzipped in the page. A browser that cannot unpack them saves them as they are.
  document.querySelectorAll("a.download[download$='.gz']").forEach((link) => link.addEventListener("click", (click) => {
    if (!window.DecompressionStream) return;
    click.preventDefault();
    const bytes = Uint8Array.from(atob(link.href.split(",", 2)[1]), (letter) => letter.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    new Response(text).blob().then((blob) => save(blob, link.download.slice(0, -".gz".length)));
  }));
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
    link.addEventListener("click", () => save(new Blob(["\ufeff", csv(table)], { type: "text/csv" }), table.dataset.file));
    line.append(link);
    table.parentElement.insertAdjacentElement("afterend", line);
  });
  // The height of a map follows from its width. For printing, figures are drawn wide, and the style sheet scales them
  // down. Sizes are in px: limits of a map's height, height of its frame, and the width at which circles are full size.
  const [LEAST, MOST, FRAME, FULL_WIDTH] = [220, 760, 130, 800];
  const [PAPER_WIDTH, PAPER_HEIGHT, PAPER_MAP] = [960, 0.75, 440];
  const plots = [...document.querySelectorAll(".js-plotly-plot")];
  const heights = new Map(plots.map((plot) => [plot, plot.layout.height ?? 420]));
  const isMap = (plot) => Boolean(plot.layout.yaxis && plot.layout.yaxis.scaleanchor);
  // Circles of a map shrink with it, or they would cover each other on a phone.
  const shrunk = (width) => ({ "marker.sizeref": 1 / Math.min(1, Math.max(width / FULL_WIDTH, 0.5)) });
  const height = (plot, width, onPaper) => {
    const { xaxis, yaxis } = plot.layout;
    if (!isMap(plot) || !xaxis.range || !yaxis.range) return heights.get(plot) * (onPaper ? PAPER_HEIGHT : 1);
    const [x, y] = [xaxis.range, yaxis.range].map(([low, high]) => high - low);
    const best = FRAME + ((width - 94) * y) / x;
    return Math.round(Math.min(Math.max(best, LEAST), onPaper ? PAPER_MAP : MOST, heights.get(plot)));
  };
  const draw = (onPaper) => plots.forEach((plot) => {
    const width = onPaper ? PAPER_WIDTH : plot.parentElement.parentElement.clientWidth;
    if (!width) return;
    const tall = height(plot, width, onPaper);
    plot.style.height = plot.parentElement.style.height = `${tall}px`; // Plotly wraps its figure in a box
    const size = { width: onPaper ? width : null, height: tall, autosize: !onPaper };
    window.Plotly.update(plot, isMap(plot) ? shrunk(width) : {}, size);
  });
  if (plots.length) {
    const paper = window.matchMedia("print");
    draw(paper.matches);
    paper.addEventListener("change", () => draw(paper.matches));
    window.addEventListener("beforeprint", () => draw(true));
    window.addEventListener("afterprint", () => draw(false));
  }
})();
