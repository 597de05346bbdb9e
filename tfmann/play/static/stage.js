// A stage: the sentence, the likely words and the figures of one model at the step that is shown.
// `act` has what its buttons do: go(step), force(i, target, token), takeBack(i).

import { palette, saveAs } from "./draw.js";
import { panels } from "./panels.js";
import { $, boundary, comparing, localStep, model, node, page, shownWord } from "./state.js";

export function stages() {
  $("stages").classList.toggle("two", comparing());
  while ($("stages").children.length > page.chosen.length) $("stages").lastChild.remove();
  page.chosen.forEach((name, i) => {
    if ($(`stage-${i}`)) return;
    const stage = node("section", { class: "stage", id: `stage-${i}` },
      node("div", { class: "name" }, node("h2"), node("p")), node("ul", { class: "earlier" }),
      node("div", { class: "lines" }), node("div", { class: "nearest" }), node("div", { class: "panels" }));
    $("stages").append(stage);
  });
}

export function showStage(i, trace, act) {
  const stage = $(`stage-${i}`);
  const focusAgain = keepFocus(stage);
  const step = localStep(trace);
  const target = step - trace.boundary;
  showName(i);
  const earlier = stage.querySelector(".earlier");
  earlier.hidden = !trace.earlier.length;
  earlier.replaceChildren(...trace.earlier.map((pair) => node("li", {},
    node("i", { dir: "auto" }, pair.source), node("br"), node("span", { dir: "auto" }, pair.target))));
  stage.querySelector(".lines").replaceChildren(sourceRow(i, trace, step, target), targetRow(i, trace, target, act));
  nearest(stage.querySelector(".nearest"), i, trace, step, act);
  figures(stage.querySelector(".panels"), i, trace, step);
  focusAgain();
}

// What is drawn anew loses the keyboard's focus: the button in its place gets it. Without one, and
// while it plays, all stages get it, where space pauses and nothing is read aloud at every step.
function keepFocus(stage) {
  const active = document.activeElement;
  if (!stage.contains(active) || !active.matches(":focus-visible")) return () => {};
  const places = [".target .word", ".nearest .choice"].map((row) => [row, [...stage.querySelectorAll(row)].indexOf(active)]);
  const [row, n] = places.find(([, number]) => number >= 0) ?? [];
  return () => {
    if (active.isConnected) return;
    const again = row && !page.playing ? stage.querySelectorAll(row)[n] : null;
    (again ?? $("stages")).focus({ preventScroll: true });
  };
}

function showName(i) {
  const { title, cell, bleu } = model(i);
  $(`stage-${i}`).querySelector("h2").textContent = title;
  $(`stage-${i}`).querySelector(".name p").textContent = `cell ${cell}${bleu ? ` · BLEU ${bleu.toFixed(1)} on the synthetic test set` : ""}`;
}

// A model without a translation: one that is loaded now, or that has refused the sentence.
export function showEmpty(i, words) {
  showName(i);
  for (const part of ["earlier", "lines", "nearest", "panels"]) {
    $(`stage-${i}`).querySelector(`.${part}`).replaceChildren();
  }
  $(`stage-${i}`).querySelector(".lines").textContent = words;
}

// Words of the invented language have their meaning below them.
function sourceRow(i, trace, step, target) {
  const weights = target >= 0 ? trace.arrays.alignments?.[target] : null;
  return node("div", { class: "row source", role: "group", "aria-label": "Source", dir: direction(trace.source_tokens) }, ...trace.source_tokens.map((word, s) => {
    const weight = weights ? weights[s] : 0;
    const kind = ["word", word === "</s>" && "end", weight > 0.25 && "looked", trace.boundary && s === step && "reading"];
    return node("span", {
      class: kind.filter(Boolean).join(" "), style: `--weight:${Math.sqrt(weight).toFixed(3)}`,
      "data-tip": weights ? `attention ${weight.toFixed(3)}` : undefined,
    }, shownWord(word), model(i).invented ? node("small", {}, page.glosses[word] ?? "") : null);
  }));
}

// Of the first word that has one, because `<unk>` and `</s>` are Latin in every language.
function direction(words) {
  const first = words.find((word) => !/^<.*>$/.test(word) && /\p{L}/u.test(word)) ?? "";
  return /^[^\p{L}]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u.test(first) ? "rtl" : "ltr";
}

function targetRow(i, trace, target, act) {
  return node("div", { class: "row target", role: "group", "aria-label": "Translation", dir: direction(trace.tokens) }, ...trace.tokens.map((word, t) => {
    const later = t > target;
    const forced = page.prefixes[i].length && t === page.prefixes[i].length - 1;
    const changed = trace.before && t >= page.prefixes[i].length && trace.before[t] !== word;
    const kind = ["word", word === "</s>" && "end", later && "later", t === target && "now", forced && "forced", changed && !later && "changed"];
    const button = node("button", {
      type: "button", class: kind.filter(Boolean).join(" "), disabled: later && false,
      "aria-label": later ? `word ${t + 1}, not produced yet` : shownWord(word),
      "aria-current": t === target ? "step" : undefined,
      "data-tip": later ? undefined : `probability ${trace.probs[t].toFixed(3)}`,
    }, shownWord(word));
    button.onclick = () => act.go(boundary() + t);
    return button;
  }));
}

function nearest(place, i, trace, step, act) {
  const target = step - trace.boundary;
  if (place.contains(document.activeElement) && document.activeElement.tagName === "INPUT" && page.playing) return;
  const prefix = page.prefixes[i];
  const undo = prefix.length ? [restore(i, act)] : [];
  if (target < 0) {
    place.replaceChildren(node("p", { class: "intro" }, `Reads “${trace.step_tokens[step] ?? ""}” into its memory.`), ...undo);
    return;
  }
  const choices = trace.nearest[target].map(({ token, prob }) => {
    const same = token === trace.tokens[target];
    const button = node("button", {
      type: "button", class: "choice", style: `--p:${prob}`, "aria-current": same ? "true" : undefined,
      title: same ? "chosen" : `Say “${shownWord(token)}” here and translate on`,
    }, node("span", {}, shownWord(token)), node("small", {}, prob < 0.0005 ? "<0.001" : prob.toFixed(3)));
    button.onclick = () => act.force(i, target, token);
    return button;
  });
  const field = node("input", { type: "text", placeholder: "another word", "aria-label": "Another word at this step", maxlength: "60" });
  const other = node("form", { class: "other" }, field);
  other.onsubmit = (event) => {
    event.preventDefault();
    if (field.value.trim()) act.force(i, target, field.value.trim());
  };
  const intro = target + 1 === prefix.length
    ? "This word was forced. Nearest by probability:" : "Nearest by probability; click one to say it here and see what changes:";
  place.replaceChildren(node("p", { class: "intro" }, intro), ...choices, other, ...undo);
}

function restore(i, act) {
  const words = page.prefixes[i];
  const button = node("button", { type: "button" }, "Take back");
  button.onclick = () => act.takeBack(i);
  return node("p", { class: "undo intro" }, `Forced: ${words.map(shownWord).join(" ")} …`, button);
}

function figures(place, i, trace, step) {
  const colors = { ...palette(), room: place.clientWidth - 34 };
  const drawn = panels(trace, step, model(i).cell);
  const old = [...place.children];
  drawn.forEach((panel, k) => {
    let figure = old[k];
    if (!figure || figure.dataset.title !== panel.title) {
      figure = frame(panel, i);
      if (old[k]) place.replaceChild(figure, old[k]); else place.append(figure);
    }
    figure.querySelector(".note").textContent = panel.note;
    figure.querySelector(".note").hidden = !panel.note;
    const scroll = figure.querySelector(".scroll");
    scroll.replaceChildren(panel.draw(colors));
    follow(scroll);
  });
  while (place.children.length > drawn.length) place.lastChild.remove();
}

// Keeps the column of the step in sight where a figure is wider than its place.
function follow(scroll) {
  const mark = scroll.querySelector(".mark");
  if (!mark || scroll.scrollWidth <= scroll.clientWidth) return;
  const x = Number(mark.getAttribute("x"));
  if (x < scroll.scrollLeft + 40 || x > scroll.scrollLeft + scroll.clientWidth - 60) {
    scroll.scrollLeft = x - scroll.clientWidth / 2;
  }
}

function frame(panel, i) {
  const scroll = node("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": panel.title });
  const save = (kind) => {
    const button = node("button", { type: "button", "aria-label": `Save ${panel.title} as ${kind.toUpperCase()}` }, kind.toUpperCase());
    const name = `${model(i).name} ${panel.title}`.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    button.onclick = () => saveAs(scroll.querySelector("svg"), name, kind, palette().card);
    return button;
  };
  const figure = node("figure", {}, node("figcaption", {}, node("h3", {}, panel.title), save("svg"), save("png")),
    node("p", { class: "note" }), scroll);
  figure.dataset.title = panel.title;
  return figure;
}
