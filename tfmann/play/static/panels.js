// Which figures a trace has, by what its cell shows. Each is {title, note, draw(colors)}.

import * as draw from "./draw.js";

// The step of the whole trace at which target word t is produced.
export const stepOf = (trace, t) => trace.boundary + t;

export function panels(trace, step, cell) {
  const target = step - trace.boundary;
  return [
    ...attention(trace, target),
    ...coverage(trace, target),
    ...rounds(trace, target, cell),
    ...cache(trace, step),
    ...wordMemory(trace, step),
    ...memory(trace, step),
    ...(trace.rounds ? [] : heads(trace, step)),
    ...others(trace, step),
  ];
}

function attention(trace, target) {
  const figures = [];
  const { alignments, previous_alignments: previous } = trace.arrays;
  if (alignments && !trace.rounds) { // of rounds it is where the last one reads
    figures.push({
      title: "Attention",
      note: "Each row is a word of the translation; the stronger the colour, the more a source word counted.",
      draw: (colors) => draw.heatmap({
        values: alignments, columns: trace.source_tokens, rows: trace.tokens, current: target,
        colour: colors.read, label: `Attention of ${trace.tokens.length} target words to ${trace.source_tokens.length} source words`, colors,
      }),
    });
  }
  const before = trace.earlier.at(-1);
  if (previous && before) {
    figures.push({
      title: "Attention to the sentence before",
      note: "",
      draw: (colors) => draw.heatmap({
        values: previous, columns: before.source_tokens, rows: trace.tokens, current: target,
        colour: colors.write, label: "Attention to the sentence before", colors,
      }),
    });
  }
  return figures;
}

// What each source word has received: the sum of its attention in shares of its fertility, or the
// length of a vector where coverage is a GRU's.
function coverage(trace, target) {
  const { coverage: covered, fertility, past_change: past, future_change: future } = trace.arrays;
  const figures = [];
  if (covered) {
    figures.push({
      title: "Coverage",
      note: fertility
        ? "How much of its share each source word has had by the end of the step; at 1 and more it has the full colour."
        : "How much of each source word is covered by the end of the step.",
      draw: (colors) => draw.heatmap({
        values: covered, columns: trace.source_tokens, rows: trace.tokens, current: target,
        colour: colors.write, label: `Coverage of ${trace.source_tokens.length} source words after each of ${trace.tokens.length} target words`, colors,
      }),
    });
  }
  if (covered && fertility) {
    const needs = fertility[target];
    figures.push({
      title: "Fertility",
      note: "A frame is as high as the number of target words that the model expects of a source word; "
        + "it fills with the attention that the word has received.",
      draw: (colors) => draw.levels({
        words: trace.source_tokens, frames: needs, fills: covered[target].map((share, j) => share * needs[j]),
        names: ["expected", "received"], label: `Fertility of ${needs.length} source words, and the attention that each has received`, colors,
      }),
    });
  }
  if (past && future) {
    figures.push({
      title: "Past and Future",
      note: "Past takes in what each step has read, Future loses it: how far each of the two vectors moves.",
      draw: (colors) => draw.timeline({
        bands: [
          { title: "how far Past moves", values: past, curve: true, colour: colors.read },
          { title: "how far Future moves", values: future, curve: true, colour: colors.write },
        ],
        words: trace.tokens, boundary: 0, current: target, label: "How far Past and Future move at each step", colors,
      }),
    });
  }
  return figures;
}

const WRITTEN = {
  kvmematt: "Every round finds source words by their keys and reads their values, the annotations; then it "
    + "rewrites the keys. The values never change.",
  mematt: "The memory begins as a copy of the annotations. Every step reads it and then rewrites it, so that "
    + "later steps find and read what was written.",
};

function rounds(trace, target, cell) {
  if (!trace.rounds) return [];
  const figures = [];
  const column = (name, round) => trace.arrays[name].map((step) => step[round]);
  const curve = (title, name, colour) => (colors) => Array.from({ length: trace.rounds }, (_, round) => ({
    title: `${title}, round ${round + 1}`, values: column(name, round), curve: true, colour: colors[colour],
  }));
  const bands = [
    curve("forgotten (length of FORGET)", "erase_norm", "soft"),
    curve("added (length of ADD)", "add_norm", "write"),
    curve(`how far the ${cell === "mematt" ? "memory has" : "keys have"} moved`, "key_drift", "read"),
  ];
  const written = () => ({
    title: "What the rounds write",
    note: WRITTEN[cell] ?? "",
    draw: (colors) => draw.timeline({
      bands: bands.flatMap((band) => band(colors)), words: trace.tokens, boundary: 0, current: target,
      label: "What each round erases and adds, and how far it has moved what it rewrites", colors,
    }),
  });
  for (let round = 0; round < trace.rounds; round += 1) {
    if (round === 1) figures.push(written());
    const map = (kind, colors) => draw.heatmap({
      values: column(`${kind}_weights`, round), columns: trace.source_tokens, rows: trace.tokens,
      current: target, size: 18, colour: colors[kind], label: "", colors,
    });
    figures.push({
      title: `Round ${round + 1}`,
      note: "",
      draw: (colors) => draw.beside(
        [map("read", colors), map("write", colors)], ["reads", "then writes to"],
        `Round ${round + 1}: where it reads, and where it then writes`, colors,
      ),
    });
  }
  if (trace.rounds === 1) figures.push(written());
  return figures;
}

function cache(trace, step) {
  const { cache_match: match, cache_gate: gate } = trace.arrays;
  if (!match || !trace.slots) return [];
  const { words, ages } = trace.slots;
  const order = words.map((_, i) => i).filter((i) => words[i]).sort((a, b) => ages[a] - ages[b]);
  const figures = [{
    title: "Cache, newest first",
    note: "Words of the document so far. The stronger the colour, the better one matches this step.",
    draw: (colors) => draw.chips({
      words: order.map((i) => words[i]), weights: order.map((i) => match[step][i]), gate: gate[step][0],
      notes: order.map((i) => `match ${draw.number(match[step][i])}\n${ages[i] + 1} word${ages[i] ? "s" : ""} ago`), colors,
      empty: "The cache is empty: the document begins here.",
      label: `A cache of ${order.length} words`,
    }),
  }];
  if (order.length) {
    figures.push({
      title: "Cache hits over the sentence",
      note: "",
      draw: (colors) => draw.timeline({
        bands: [
          { title: "match", values: match.map((row) => order.map((i) => row[i])), rows: order.map((i) => words[i]), serif: true, colour: colors.read },
          { title: "λ, how much is mixed in", values: gate, curve: true, to: Math.max(0.05, ...gate.map((row) => row[0])), colour: colors.write },
        ],
        words: trace.tokens, boundary: 0, current: step, colors, label: "Which cached word matches at each step",
      }),
    });
  }
  return figures;
}

const MOST_ENTRIES = 16; // rows of the figure over the sentence
const MOST_TILES = 24;

// A memory that proposes words to the search: a neural cache, a translation memory, word translations.
// While the source is read it proposes nothing.
function wordMemory(trace, step) {
  const memory = trace.word_memory;
  if (!memory) return [];
  const { entries } = memory;
  const wholly = (values, nothing) => [...Array(trace.boundary).fill(nothing), ...values];
  const weights = wholly(memory.weights, entries.map(() => 0));
  const [share, proposed, model] = ["share", "memory", "model"].map((name) => wholly(memory[name], 0));
  const column = (i) => weights.map((row) => row[i]);
  const votes = weights[step];
  const here = votes.map((_, i) => i).filter((i) => votes[i] > 0).sort((a, b) => votes[b] - votes[a]).slice(0, MOST_TILES);
  const figures = [{
    title: "Memory of words, greatest vote first",
    note: "Words that the memory proposes at this step. The stronger the colour, the greater the vote.",
    draw: (colors) => draw.chips({
      words: here.map((i) => entries[i].word), weights: here.map((i) => votes[i]), gate: share[step],
      notes: here.map((i) => `vote ${votes[i].toFixed(3)}\n${entries[i].origin}`), colors,
      empty: entries.length ? "No word is proposed here." : "The memory is empty.",
      label: `${here.length} words that a memory proposes`,
    }),
  }];
  const total = entries.map((_, i) => column(i).reduce((a, b) => a + b, 0));
  const order = entries.map((_, i) => i).sort((a, b) => total[b] - total[a]).slice(0, MOST_ENTRIES);
  const curve = (title, values, colour, to) => ({ title, values: values.map((value) => [value]), curve: true, colour, to });
  if (order.length) {
    figures.push({
      title: "Votes over the sentence",
      note: order.length < entries.length ? `The ${order.length} entries with most votes, of ${entries.length}.` : "",
      draw: (colors) => draw.timeline({
        bands: [
          { title: "vote", values: weights.map((row) => order.map((i) => row[i])), rows: order.map((i) => entries[i].word), serif: true, colour: colors.read },
          curve("λ, the share of the memory", share, colors.write, Math.max(0.05, ...share)),
          curve("the word's probability by the memory", proposed, colors.read, 1),
          curve("by the model alone", model, colors.soft, 1),
        ],
        words: trace.step_tokens, boundary: trace.boundary, current: step, colors, label: "Which words a memory proposes at each step",
      }),
    });
  }
  return figures;
}

// Slots of a memory that is written to: only where the slots are no source words.
function memory(trace, step) {
  const write = trace.arrays.write_weights;
  if (!write || trace.rounds) return [];
  const count = write[0][0].length;
  const fill = new Array(count).fill(0);
  const best = new Array(count).fill(0.12);
  const names = new Array(count).fill("");
  for (let t = 0; t <= step; t += 1) {
    write[t].forEach((weights) => weights.forEach((weight, n) => {
      const written = weight;
      fill[n] = 1 - (1 - fill[n]) * (1 - written);
      if (written >= best[n]) {
        best[n] = written;
        names[n] = trace.step_tokens[t];
      }
    }));
  }
  const most = (name) => trace.arrays[name]?.[step].reduce((a, b) => a.map((value, n) => Math.max(value, b[n])));
  return [{
    title: "Memory",
    note: "Slots fill as words are written. The name is the word at which a slot was written to most. "
      + "A blue frame marks what is read now and a red one what is written, at twice an equal share or more.",
    draw: (colors) => draw.slots({
      fill, write: most("write_weights"), read: most("read_weights"), names, colors,
      label: `A memory of ${count} slots`,
    }),
  }];
}

const BANDS = [
  ["weights", "address"],
  ["content_weights", "where the content alone would lead"],
  ["allocation_weights", "where the next free slot is"],
  ["shift_kernel", "shift"],
  ["read_modes", "backward, content, forward"],
  ["interpolation_gate", "gate: 1 by content, 0 from the last address"],
  ["write_gate", "write gate"],
  ["allocation_gate", "allocation gate: 1 where free, 0 by content"],
  ["free_gate", "free gate: what was read is free now"],
  ["sharpening", "sharpening γ"],
  ["backward_sharpness", "sharpness of the backward weights"],
  ["forward_sharpness", "sharpness of the forward weights"],
  ["erase_norm", "erased"],
  ["add_norm", "added"],
];
const CURVES = { sharpening: 1, backward_sharpness: 1, forward_sharpness: 1, erase_norm: 0, add_norm: 0, interpolation_gate: 0, write_gate: 0, allocation_gate: 0, free_gate: 0 };
const GATES = ["interpolation_gate", "write_gate", "allocation_gate", "free_gate"];

function heads(trace, step) {
  const together = sharedAddress(trace.arrays);
  return Object.entries(trace.heads).filter(([name]) => !together || name.startsWith("write")).map(([name, seen]) => {
    const [kind, , index] = name.split("_");
    const several = Object.keys(trace.heads).filter((other) => other.startsWith(kind)).length > 1;
    const title = together ? "Address of reading and writing"
      : `${kind === "read" ? "Read" : "Write"} head${several ? ` ${index}` : ""}`;
    return {
      title,
      note: sentence(trace, seen, step),
      draw: (colors) => draw.timeline({
        bands: bands(trace, seen, colors, kind), words: trace.step_tokens, boundary: trace.boundary,
        current: step, label: `${title}: address, gates and shift at each step`, colors,
      }),
    };
  });
}

// Whether every step writes where it has read: one figure shows both.
function sharedAddress({ read_weights: read, write_weights: write }) {
  return Boolean(write) && JSON.stringify(read) === JSON.stringify(write);
}

function bands(trace, seen, colors, kind) {
  return BANDS.filter(([name]) => seen[name]).map(([name, title]) => {
    const band = { title, values: seen[name], colour: colors[kind === "read" ? "read" : "write"] };
    if (name in CURVES) {
      Object.assign(band, { curve: true, from: CURVES[name], to: GATES.includes(name) ? 1 : undefined, height: GATES.includes(name) ? 24 : 34 });
    } else if (name === "shift_kernel") {
      const reach = (seen[name][0].length - 1) / 2;
      band.rows = seen[name][0].map((_, j) => (j - reach > 0 ? `+${j - reach}` : `${j - reach}`.replace("-", "−")));
    } else if (name === "read_modes") {
      const writers = (seen[name][0].length - 1) / 2;
      band.rows = seen[name][0].map((_, m) => (m < writers ? "backward" : m === writers ? "content" : "forward"));
    } else if (trace.addresses_source) {
      Object.assign(band, { rows: trace.source_tokens, serif: true });
    }
    return band;
  });
}

function sentence(trace, seen, step) {
  const parts = [];
  const at = (name) => seen[name]?.[step][0];
  const gate = at("interpolation_gate");
  if (gate !== undefined) {
    parts.push(gate > 0.5 ? `addressed by content (gate ${gate.toFixed(2)})` : `moved from the last address (gate ${gate.toFixed(2)})`);
  }
  if (seen.shift_kernel) {
    const kernel = seen.shift_kernel[step];
    const best = kernel.indexOf(Math.max(...kernel));
    const offset = best - (kernel.length - 1) / 2;
    parts.push(offset ? `shifted by ${offset > 0 ? "+" : "−"}${Math.abs(offset)} (${kernel[best].toFixed(2)})` : `not shifted (${kernel[best].toFixed(2)})`);
  }
  if (seen.sharpening) parts.push(`sharpened by γ = ${at("sharpening").toFixed(1)}`);
  if (seen.write_gate) parts.push(`write gate ${at("write_gate").toFixed(2)}`);
  if (seen.add_norm) parts.push(`adds ${at("add_norm").toFixed(2)}, erases ${at("erase_norm").toFixed(2)}`);
  return parts.length ? `At “${trace.step_tokens[step]}”: ${parts.join(", ")}.` : "";
}

function others(trace, step) {
  const curves = [["usage", "Usage of the memory"], ["summary_gate", "How much of the document enters"]];
  return curves.filter(([name]) => trace.arrays[name]).map(([name, title]) => ({
    title,
    note: "",
    draw: (colors) => draw.timeline({
      bands: [{ title: name === "usage" ? "how full each slot is" : "gate", values: trace.arrays[name], curve: trace.arrays[name][0].length === 1, to: 1, colour: colors.soft }],
      words: trace.step_tokens, boundary: trace.boundary, current: step, label: title, colors,
    }),
  }));
}
