// What the page knows: the models, their traces, and the step that is shown.

export const $ = (id) => document.getElementById(id);
export const page = {
  models: [], glosses: {}, chosen: [], traces: [], prefixes: [[], []], step: 0, playing: 0, lines: [],
  asked: 0, questions: [], // the number of the last one, and what aborts that of each model
};

export const model = (i) => page.models.find((one) => one.name === page.chosen[i]);
export const comparing = () => page.chosen.length > 1;

// The step that is shown: steps of the longest trace, reading first

export const shown = () => page.traces.slice(0, page.chosen.length).filter(Boolean);
export const boundary = () => Math.max(0, ...shown().map((trace) => trace.boundary));
export const lastStep = () => boundary() + Math.max(0, ...shown().map((trace) => trace.tokens.length)) - 1;

// A cell over an encoder does nothing while another reads: it waits at its first word.
export function localStep(trace) {
  const step = page.step - (boundary() - trace.boundary);
  return Math.max(0, Math.min(step, trace.boundary + trace.tokens.length - 1));
}

export const shownWord = (word) => (word === "</s>" ? "end" : word);

export function node(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
