// Files go to the API as they are, in pieces, so that the server can refuse one that is too large while it arrives.
(() => {
  const made = new WeakSet();
  const send = async (url, file) => {
    const response = await fetch(url, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } });
    return read(response);
  };
  const read = async (response) => {
    const said = await response.json().catch(() => ({}));
    if (!response.ok) {
      const detail = Array.isArray(said.detail) ? said.detail.map((part) => part.msg).join(", ") : said.detail;
      throw new Error(detail || `The server answered ${response.status}.`);
    }
    return said;
  };
  const input = (id, label, multiple) => {
    const box = document.createElement("div");
    box.className = "field";
    const name = document.createElement("label");
    name.htmlFor = id;
    name.textContent = label;
    const chosen = document.createElement("input");
    Object.assign(chosen, { type: "file", id, multiple });
    box.append(name, chosen);
    return [box, chosen];
  };
  const value = (id) => {
    const found = document.getElementById(id);
    return found && found.value.trim() !== "" ? found.value.trim() : null;
  };
  const share = (id) => (value(id) === null ? null : Number(value(id)) / 100);
  const build = (place) => {
    const [first, sessions] = input("sessions-file", "Session records (CSV, Excel, JSON, Parquet)", true);
    const [second, stations] = input("stations-file", "Stations (optional)", false);
    const button = document.createElement("button");
    button.className = "primary";
    button.type = "button";
    button.id = "records-start";
    button.textContent = "Estimate lost demand";
    const said = document.createElement("p");
    said.id = "records-said";
    said.setAttribute("role", "status");
    place.append(first, second, button, said);
    ["dragover", "dragleave", "drop"].forEach((kind) => place.addEventListener(kind, (event) => {
      event.preventDefault();
      place.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) sessions.files = event.dataTransfer.files;
    }));
    button.addEventListener("click", async () => {
      if (!sessions.files.length) { said.textContent = "Choose a file of session records first."; return; }
      button.disabled = true;
      try {
        let upload = null;
        for (const file of sessions.files) {
          said.textContent = `Sending ${file.name} …`;
          const query = new URLSearchParams({ name: file.name, ...(upload ? { upload } : {}) });
          upload = (await send(`/api/records?${query}`, file)).id;
        }
        if (stations.files.length) {
          await send(`/api/records/${upload}/stations?${new URLSearchParams({ name: stations.files[0].name })}`, stations.files[0]);
        }
        const asked = { time_zone: value("records-zone"), waiting: share("records-waiting"), spill: share("records-spill") };
        const job = await read(await fetch(`/api/records/${upload}/recover`, {
          method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked),
        }));
        said.textContent = "";
        window.dash_clientside.set_props("records-job", { data: job.id });
      } catch (error) {
        said.textContent = error.message;
      } finally {
        button.disabled = false;
      }
    });
  };
  new MutationObserver(() => {
    const place = document.getElementById("records-drop");
    if (place && !made.has(place)) { made.add(place); build(place); }
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
