"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // Times are in UTC without scripts; with them in the reader's own zone, and UTC is a tooltip.
  const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const item of document.querySelectorAll("time")) {
    const text = item.textContent;
    const at = new Date(text.replace(" ", "T"));
    if (Number.isNaN(at.getTime())) continue;
    item.dateTime = at.toISOString();
    item.title = text.replace("Z", " UTC");
    item.textContent = zone.format(at);
  }

  const form = document.querySelector(".filters");
  if (!form) return;
  const severities = { bad: "outage", warn: "degraded", note: "notice" };
  const rows = [...document.querySelectorAll(".f")].map((item) => ({
    item,
    group: item.closest(".group"),
    kind: item.dataset.k,
    severity: severities[item.classList[1]],
    isNew: "n" in item.dataset,
    text: "",
  }));
  const groups = [...document.querySelectorAll(".group")];
  const output = form.querySelector("output");
  const nothing = document.querySelector(".nothing");
  const boxes = (name) => [...form.querySelectorAll(`[name="${name}"]`)];
  const chosen = (name) => new Set(boxes(name).filter((box) => box.checked).map((box) => box.value));

  const textOf = (row) => {
    row.text ||= `${row.group.querySelector("h3").textContent} ${row.item.textContent}`.toLowerCase();
    return row.text;
  };

  const show = () => {
    const kinds = chosen("class");
    const wanted = chosen("severity");
    const onlyNew = form.elements.new.checked;
    const words = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const alive = new Set();
    let shown = 0;
    for (const row of rows) {
      const fits =
        kinds.has(row.kind) &&
        wanted.has(row.severity) &&
        (!onlyNew || row.isNew) &&
        words.every((word) => textOf(row).includes(word));
      row.item.hidden = !fits;
      if (fits) {
        shown += 1;
        alive.add(row.group);
      }
    }
    for (const group of groups) group.hidden = !alive.has(group);
    nothing.hidden = shown > 0;
    output.textContent = `${shown} of ${rows.length} shown`;
  };

  // The filter is in the address, so that a link shows what its sender saw: #severity=outage&q=dgx1
  const remember = () => {
    const state = new URLSearchParams();
    for (const name of ["severity", "class"]) {
      const all = boxes(name);
      const some = all.filter((box) => box.checked).map((box) => box.value);
      if (some.length < all.length) state.set(name, some.join(","));
    }
    if (form.elements.new.checked) state.set("new", "1");
    if (form.elements.q.value) state.set("q", form.elements.q.value);
    const text = state.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };

  const restore = (text) => {
    const state = new URLSearchParams(text);
    for (const name of ["severity", "class"]) {
      const some = state.has(name) ? new Set(state.get(name).split(",")) : null;
      for (const box of boxes(name)) box.checked = some === null || some.has(box.value);
    }
    form.elements.new.checked = state.get("new") === "1";
    form.elements.q.value = state.get("q") || "";
    show();
  };

  const follow = () => {
    const text = location.hash.slice(1);
    if (text.includes("=")) {
      restore(text);
      return;
    }
    const row = rows.find(({ item }) => item.id === text);
    if (row && row.item.hidden) {
      restore("");
      row.item.scrollIntoView();
    }
  };

  form.addEventListener("input", () => {
    show();
    remember();
  });
  form.addEventListener("reset", () => setTimeout(() => {
    show();
    remember();
  }));
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const link of document.querySelectorAll("[data-f]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      restore(link.dataset.f);
      remember();
      const heading = document.getElementById("findings");
      heading.focus({ preventScroll: true });
      heading.scrollIntoView();
    });
  }
  addEventListener("hashchange", follow);
  follow();
})();
