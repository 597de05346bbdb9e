// The page: what is asked, how the step changes, and the keyboard.

import { showEmpty, showStage, stages } from "./stage.js";
import {
  $, boundary, comparing, lastStep, localStep, model, node, page, shown, shownWord,
} from "./state.js";

// What is asked

async function fetchJSON(path, body, signal) {
  const answer = await fetch(path, body && {
    signal, method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const value = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(value.error);
  return value;
}

const address = () => new URLSearchParams(location.hash.slice(1));

async function begin() {
  setTheme(address().get("theme") ?? storage()?.getItem("tfmann-theme") ?? "");
  try {
    const { models, glosses } = await fetchJSON("play/models");
    Object.assign(page, { models, glosses });
  } catch (error) {
    return complain(error);
  }
  for (const id of ["model-0", "model-1"]) {
    $(id).replaceChildren(...page.models.map((one) => new Option(one.title, one.name)));
  }
  // A bookmark in this tab; "#stages" of the link that skips names no model.
  addEventListener("hashchange", () => { if (address().has("model")) visit(); });
  await visit();
}

// Shows what the address names.
async function visit() {
  const hash = address();
  const known = (name) => page.models.some((one) => one.name === name);
  page.chosen = [known(hash.get("model")) ? hash.get("model") : page.models[0].name];
  if (known(hash.get("with"))) page.chosen.push(hash.get("with"));
  const text = hash.get("text") ?? (model(0).examples[0] ?? []).join("\n");
  $("text").value = text;
  page.prefixes = ["prefix", "prefix2"].map((key) => (hash.get(key) ?? "").split(" ").filter(Boolean));
  page.traces = [];
  $("stages").replaceChildren();
  $("transport").hidden = true;
  showChoosers();
  const step = parseInt(hash.get("step"), 10);
  if (text.trim()) await ask(Number.isNaN(step) ? null : step);
}

function showChoosers() {
  page.chosen.forEach((name, i) => { $(`model-${i}`).value = name; });
  $("second").hidden = !comparing();
  $("compare").setAttribute("aria-pressed", String(comparing()));
  $("text-label").textContent = page.chosen.some((_, i) => model(i).documents)
    ? "Document: a sentence a line; the last is shown" : "Sentence";
  const seen = new Set();
  const examples = page.chosen.flatMap((_, i) => model(i).examples).filter((lines) => {
    const key = lines.join("\n");
    return !seen.has(key) && seen.add(key);
  });
  $("examples").replaceChildren(...examples.slice(0, 4).map((lines) => {
    const button = node("button", { type: "button", title: lines.join("\n") }, lines.length > 1 ? `${lines[0]} …` : lines[0]);
    button.onclick = () => { $("text").value = lines.join("\n"); restart(); };
    return button;
  }));
  grow();
}

function restart() {
  page.prefixes = [[], []];
  grow();
  return ask();
}

// Asks every chosen model; `step` is where to look then, the first if null.
async function ask(step = null, only = null) {
  pause();
  const number = page.asked += 1;
  page.lines = $("text").value.split("\n").filter((line) => line.trim());
  if (!page.lines.length) return complain(new Error("Type a sentence in the model’s source language."));
  $("message").hidden = true;
  stages();
  const before = page.traces;
  if (only === null) {
    page.traces = page.traces.slice(0, page.chosen.length);
    for (const question of page.questions) question.abort();
  }
  await Promise.all(page.chosen.map(async (name, i) => {
    if (only !== null && only !== i) return;
    page.questions[i]?.abort();
    const question = page.questions[i] = new AbortController();
    const superseded = () => question.signal.aborted;
    const stage = $(`stage-${i}`);
    stage.classList.add("busy");
    stage.setAttribute("aria-busy", "true");
    if (!before[i]) showEmpty(i, "Loading the model …");
    try {
      const body = { model: name, lines: page.lines, prefix: page.prefixes[i] };
      const trace = await fetchJSON("play/trace", body, question.signal);
      if (superseded()) return;
      if (page.prefixes[i].length && before[i]?.source === trace.source) {
        trace.before = before[i].before && only === null ? before[i].before : before[i].tokens;
      }
      trace.prefix = page.prefixes[i];
      page.traces[i] = trace;
    } catch (error) {
      if (superseded()) return;
      page.prefixes[i] = before[i]?.prefix ?? []; // of the trace that stays
      if (!before[i]) showEmpty(i, "");
      complain(error);
    } finally {
      if (!superseded()) {
        stage.classList.remove("busy");
        stage.removeAttribute("aria-busy");
      }
    }
  }));
  $("transport").hidden = !shown().length;
  if (!shown().length) return;
  if (number !== page.asked) return go(page.step); // the other model was asked meanwhile
  page.step = step === null ? 0 : Math.max(0, Math.min(step, lastStep()));
  show();
  if (step === null) playOn();
}

function complain(error) {
  $("message").textContent = error.message;
  $("message").hidden = false;
}

// The step that is shown

function go(step) {
  page.step = Math.max(0, Math.min(step, lastStep()));
  show();
}

function jump(step) {
  pause();
  go(step);
}

function play() {
  if (page.step >= lastStep()) page.step = 0;
  clearInterval(page.playing);
  page.playing = setInterval(() => {
    if (page.step >= lastStep()) return pause();
    go(page.step + 1);
  }, 620);
  show();
}

// Plays what follows, unless nothing does or the system asks for less motion.
function playOn() {
  if (page.step < lastStep() && !matchMedia("(prefers-reduced-motion: reduce)").matches) play();
}

function pause() {
  clearInterval(page.playing);
  page.playing = 0;
  buttons();
}

// Drawing

function show() {
  stages();
  page.chosen.forEach((_, i) => { if (page.traces[i]) showStage(i, page.traces[i], act); });
  ticks();
  buttons();
  announce();
  remember();
}

function force(i, target, token) {
  const before = page.traces[i];
  if (token === before.tokens[target]) return;
  page.prefixes[i] = [...before.tokens.slice(0, target), token];
  ask(boundary() + target, i).then(() => { if (page.traces[i] !== before) playOn(); }); // not if it was refused
}

function takeBack(i) {
  page.prefixes[i] = [];
  delete page.traces[i].before;
  ask(page.step, i);
}

const act = { go: jump, force, takeBack };

// A word for each step: those of the model that reads longest, then of the one that writes longest.
function ticks() {
  const most = (count) => shown().reduce((a, b) => (count(b) > count(a) ? b : a));
  const reader = most((trace) => trace.boundary);
  const words = [...reader.step_tokens.slice(0, boundary()), ...most((trace) => trace.tokens.length).tokens];
  $("transport").hidden = false;
  $("scrub").max = lastStep();
  $("scrub").value = page.step;
  $("scrub").parentNode.style.setProperty("--steps", lastStep() + 1);
  $("scrub").setAttribute("aria-valuetext", spoken());
  $("ticks").replaceChildren(...words.map((word, i) => {
    const tick = node("li", { class: [i === page.step && "now", i < boundary() && "read"].filter(Boolean).join(" ") }, node("span", {}, shownWord(word)));
    tick.onclick = () => jump(i);
    return tick;
  }));
  $("where").textContent = `${page.step + 1} of ${lastStep() + 1}`;
}

function buttons() {
  $("play").querySelector("path").setAttribute("d", page.playing ? "M3 2h4v12H3zM9 2h4v12H9z" : "M4 1.5v13l10-6.5z");
  $("play").setAttribute("aria-label", page.playing ? "Pause" : "Play");
  if (!shown().length) return;
  $("first").disabled = $("back").disabled = page.step <= 0;
  $("last").disabled = $("next").disabled = page.step >= lastStep();
}

function spoken() {
  return shown().map((trace) => {
    const step = localStep(trace);
    const t = step - trace.boundary;
    if (t < 0) return `reads ${trace.step_tokens[step]}`;
    const weights = trace.arrays.alignments?.[t];
    const look = weights ? `, looks at ${shownWord(trace.source_tokens[weights.indexOf(Math.max(...weights))])}` : "";
    return `${shownWord(trace.tokens[t])}, probability ${trace.probs[t].toFixed(2)}${look}`;
  }).join("; ");
}

function announce() {
  if (!page.playing) $("live").textContent = `Step ${page.step + 1} of ${lastStep() + 1}: ${spoken()}`;
}

function remember() {
  const hash = new URLSearchParams({ model: page.chosen[0], text: page.lines.join("\n"), step: page.step });
  if (comparing()) hash.set("with", page.chosen[1]);
  page.prefixes.forEach((words, i) => { if (words.length) hash.set(i ? "prefix2" : "prefix", words.join(" ")); });
  history.replaceState(null, "", `#${hash}`);
}

// Light and dark

// A browser that refuses cookies refuses this, too.
function storage() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  $("theme").textContent = dark ? "Light" : "Dark";
}

$("theme").onclick = () => {
  const theme = $("theme").textContent.toLowerCase();
  storage()?.setItem("tfmann-theme", theme);
  setTheme(theme);
  if (shown().length) show();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  setTheme(document.documentElement.dataset.theme ?? "");
  if (shown().length) show();
});

// Controls

function grow() {
  const field = $("text");
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, 200)}px`;
}

$("composer").onsubmit = (event) => { event.preventDefault(); restart(); };
$("text").oninput = grow;
window.addEventListener("resize", grow);
$("text").onkeydown = (event) => {
  const document_ = page.chosen.some((_, i) => model(i).documents);
  if (event.key === "Enter" && !event.isComposing && !event.shiftKey && (!document_ || event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    restart();
  }
};
for (const i of [0, 1]) {
  $(`model-${i}`).onchange = (event) => {
    const plain = (one) => one.examples.map((lines) => lines.join("\n"));
    const text = $("text").value;
    const wasExample = !text.trim() || page.models.some((one) => plain(one).includes(text));
    page.chosen[i] = event.target.value;
    page.traces[i] = undefined;
    if (!i && wasExample && model(0).examples.length && !plain(model(0)).includes($("text").value)) {
      $("text").value = plain(model(0))[0];
    }
    showChoosers();
    restart();
  };
}
$("compare").onclick = () => {
  if (comparing()) {
    page.chosen.length = 1;
    page.traces.length = 1;
  } else {
    page.chosen.push((page.models.find((one) => one.name !== page.chosen[0]) ?? page.models[0]).name);
  }
  showChoosers();
  restart();
};
$("first").onclick = () => jump(0);
$("back").onclick = () => jump(page.step - 1);
$("next").onclick = () => jump(page.step + 1);
$("last").onclick = () => jump(lastStep());
$("play").onclick = () => { if (page.playing) pause(); else play(); };
$("scrub").oninput = (event) => jump(Number(event.target.value));

document.addEventListener("keydown", (event) => {
  const busy = event.target.closest("input, textarea, select, button") && event.target.id !== "play";
  if (event.ctrlKey || event.metaKey || event.altKey || !shown().length) return;
  if (event.target.closest("input, textarea, select")) return;
  const action = {
    ArrowLeft: () => jump(page.step - 1),
    ArrowRight: () => jump(page.step + 1),
    Home: () => jump(0),
    End: () => jump(lastStep()),
    " ": busy ? null : () => (page.playing ? pause() : play()),
  }[event.key];
  if (!action || event.target.closest(".scroll") && event.key.startsWith("Arrow") && event.shiftKey) return;
  event.preventDefault();
  action();
});

// Numbers under the pointer

document.addEventListener("pointermove", (event) => {
  const under = event.target.closest?.("[data-tip]");
  const tip = $("tip");
  tip.hidden = !under;
  if (!under) return;
  tip.textContent = under.dataset.tip;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
});
document.addEventListener("pointerleave", () => { $("tip").hidden = true; });
document.addEventListener("click", (event) => {
  const cell = event.target.closest?.(".scroll [data-step]");
  if (!cell) return;
  const i = Number(cell.closest(".stage").id.split("-")[1]);
  const trace = page.traces[i];
  const step = Number(cell.dataset.step);
  const whole = cell.closest("svg").dataset.steps === "whole" ? step : trace.boundary + step;
  jump(whole + boundary() - trace.boundary);
});

begin();
