"use strict";
// The page contains everything; this script only selects what is visible.
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Dark or light: the system's choice, until the button is used.
const theme = document.getElementById("theme");
const dark = () => (document.documentElement.dataset.theme ||
  (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = dark() ? "Light colours" : "Dark colours"; };
theme.hidden = false;
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  nameTheme();
});
nameTheme();

// A heading sorts by the first number of its cells, or else by their text; empty cells go last.
const keyOf = (row, column) => {
  const text = row.cells[column].textContent.trim();
  const digits = text.replace(/−/g, "-").replace(/(\d),(?=\d{3})/g, "$1");  // 7,500 is 7500
  const number = digits.match(/^[≤+]?\s*(-?\d+(\.\d+)?)/);
  return { text, number: number ? parseFloat(number[1]) : null, none: text === "–" || text === "not yet measured" };
};
const order = (a, b) => a.none - b.none ||
  (a.number !== null && b.number !== null ? a.number - b.number : a.text.localeCompare(b.text));
for (const table of all("table.sortable")) {
  const headings = all("thead th", table);
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = all("tbody tr", table).map((row) => ({ row, key: keyOf(row, column) }));
      rows.sort((a, b) => a.key.none - b.key.none || (down ? -1 : 1) * order(a.key, b.key));
      rows.forEach(({ row }) => row.parentNode.append(row));
    });
  });
}

// Rows of a table that match the filters.
for (const form of all("[data-filters]")) {
  const rows = all(`#${form.dataset.filters} tbody tr`);
  const choices = all("select", form);
  const filter = () => {
    for (const row of rows) {
      row.hidden = choices.some((one) => {
        const value = row.dataset[one.dataset.key];
        if (one.value === "measured") return value === "not yet measured";
        return one.value && value !== one.value;
      });
    }
    const shown = rows.filter((row) => !row.hidden).length;
    form.querySelector("output").textContent = `${shown} of ${rows.length} shown`;
  };
  form.addEventListener("change", filter);
  filter();
}

// Curves: over updates or minutes; a name in the legend highlights its line.
for (const curves of all(".curves")) {
  const show = () => {
    const over = curves.querySelector("input:checked")?.value;  // BLEU by length has no choice
    all("figure", curves).forEach((one) => { one.hidden = one.dataset.over !== over; });
  };
  curves.addEventListener("change", show);
  show();
  const buttons = all(".legend button", curves);
  const mark = (system) => {
    curves.classList.toggle("chosen", system !== null);
    all(".line", curves).forEach((line) => {
      line.classList.toggle("on", line.dataset.system === system);
    });
  };
  const pressed = () => {
    const active = buttons.find((button) => button.getAttribute("aria-pressed") === "true");
    return active ? active.dataset.system : null;
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") === "true";
      buttons.forEach((other) => other.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(!on));
      mark(pressed());
    });
    button.addEventListener("mouseenter", () => mark(button.dataset.system));
    button.addEventListener("mouseleave", () => mark(pressed()));
  }
}

// The tip of a point begins with its line's name, which the page has once.
for (const line of all(".line")) {
  const name = line.querySelector("title").textContent;
  all("circle title", line).forEach((tip) => tip.prepend(`${name}: `));
}

// One sentence at a time, with the figures of one system, which stays selected.
for (const panel of all(".examples")) {
  const examples = all(".example", panel);
  const sentence = panel.querySelector(".choose-sentence");
  const systems = all(".choose-system", panel);
  let selected = systems.length ? systems[0].selectedOptions[0].textContent : "";
  const show = () => {
    examples.forEach((one, i) => { one.hidden = i !== Number(sentence.value); });
    for (const choice of systems) {
      const option = [...choice.options].find((one) => one.textContent === selected);
      if (option) choice.value = option.value;
      all(".system", choice.closest(".drawings")).forEach((one, i) => {
        one.hidden = i !== Number(choice.value);
      });
    }
  };
  sentence.addEventListener("change", show);
  for (const choice of systems) {
    choice.addEventListener("change", () => {
      selected = choice.selectedOptions[0].textContent;
      show();
    });
  }
  for (const button of all(".step", panel)) {
    button.addEventListener("click", () => {
      const count = examples.length;
      sentence.value = (Number(sentence.value) + Number(button.dataset.by) + count) % count;
      show();
    });
  }
  panel.querySelector(".choose-against").addEventListener("change", (event) => {
    panel.dataset.against = event.target.value;
  });
  all("form", panel).forEach((form) => form.addEventListener("submit", (e) => e.preventDefault()));
  show();
}
