// Files are streamed to the API, so that the server can refuse one that is too large while it arrives.
(() => {
  const built = new WeakSet();
  const parse = async (response) => {
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) {
      const detail = Array.isArray(answer.detail) ? answer.detail.map((part) => part.msg).join(", ") : answer.detail;
      throw new Error(detail || `The server answered ${response.status}.`);
    }
    return answer;
  };
  const sendFile = async (url, file) => parse(await fetch(url, {
    method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" },
  }));
  const sendJson = async (url, body) => parse(await fetch(url, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  }));
  const value = (id) => {
    const found = document.getElementById(id);
    return found && found.value.trim() !== "" ? found.value.trim() : null;
  };
  const fraction = (id) => (value(id) === null ? null : Number(value(id)) / 100);
  const fileInput = (id, label, multiple) => {
    const box = document.createElement("div");
    box.className = "field";
    const name = document.createElement("label");
    name.htmlFor = id;
    name.textContent = label;
    const chosen = document.createElement("input");
    Object.assign(chosen, { type: "file", id, multiple });
    box.append(name, chosen);
    box.addEventListener("dragover", (event) => { event.preventDefault(); box.classList.add("over"); });
    box.addEventListener("dragleave", () => box.classList.remove("over"));
    box.addEventListener("drop", (event) => {
      event.preventDefault();
      box.classList.remove("over");
      if (event.dataTransfer.files.length) {
        chosen.files = event.dataTransfer.files;
        chosen.dispatchEvent(new Event("change"));
      }
    });
    return [box, chosen];
  };
  // Files are uploaded once; the upload can be estimated again under other assumptions any number of times.
  const build = (place) => {
    const [first, sessions] = fileInput("sessions-file", "Drop session records here (CSV, Excel, JSON, Parquet)", true);
    const [second, stations] = fileInput("stations-file", "Drop a table of stations here (optional)", false);
    place.append(first, second);
    const button = document.getElementById("records-start");
    const status = document.getElementById("records-status");
    let upload = null;
    let job = null;
    const uploaded = async () => {
      if (upload) return upload;
      let id = null;
      for (const file of sessions.files) {
        status.textContent = `Sending ${file.name} …`;
        id = (await sendFile(`/api/records?${new URLSearchParams({ name: file.name, ...(id ? { upload: id } : {}) })}`, file)).id;
      }
      for (const file of stations.files) {
        await sendFile(`/api/records/${id}/stations?${new URLSearchParams({ name: file.name })}`, file);
      }
      return id;
    };
    const start = async () => {
      button.disabled = true;
      const assumed = { waiting: fraction("records-waiting"), spill: fraction("records-spill") };
      try {
        if (job) await fetch(`/api/jobs/${job}`, { method: "DELETE" });
        if (sessions.files.length) {
          upload = await uploaded();
          job = (await sendJson(`/api/records/${upload}/recover`, { ...assumed, time_zone: value("records-zone") })).id;
        } else {
          const run = new URLSearchParams(window.location.search).get("run") || "given";
          job = (await sendJson(`/api/runs/${run}/recover`, assumed)).id;
        }
        status.textContent = "";
        window.dash_clientside.set_props("records-job", { data: job });
      } catch (error) {
        status.textContent = error.message;
      } finally {
        button.disabled = false;
      }
    };
    [sessions, stations].forEach((chosen) => chosen.addEventListener("change", () => {
      upload = null;
      if (sessions.files.length) start();
    }));
    button.addEventListener("click", start);
  };
  new MutationObserver(() => {
    const place = document.getElementById("records-drop");
    if (place && !built.has(place)) { built.add(place); build(place); }
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
