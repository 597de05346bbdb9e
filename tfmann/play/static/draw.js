// Figures as SVG: heat maps with words along the axes, curves, bars. Colours are written into the
// figure, so that a saved picture looks as it does on the page.

const NS = "http://www.w3.org/2000/svg";
const SERIF = "'Iowan Old Style','Palatino Linotype',Palatino,P052,Georgia,'DejaVu Serif',serif";
const SANS = "system-ui,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif";
const WRITES = "writes the translation →";
const measure = document.createElement("canvas").getContext("2d");

export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(
    ["card", "ink", "soft", "line", "wash", "read", "write", "mark"].map((name) => [name, colour(name)]),
  );
}

export function element(name, attributes = {}, ...children) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

export function widest(words, size = 13, family = SERIF) {
  measure.font = `${size}px ${family}`;
  return Math.max(0, ...words.map((word) => measure.measureText(word).width));
}

function svg(width, height, label) {
  return element("svg", {
    xmlns: NS, viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
  });
}

function text(x, y, content, colour, options = {}) {
  const node = element("text", {
    x, y, fill: colour, "font-family": options.sans ? SANS : SERIF, "font-size": options.size ?? 13,
    "text-anchor": options.anchor ?? "start", "font-weight": options.bold ? 600 : undefined,
    "font-style": options.italic ? "italic" : undefined, transform: options.transform,
    "dominant-baseline": options.baseline,
  });
  node.textContent = content;
  return node;
}

export const number = (value) => (Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(3));

// Small weights must be visible and large ones differ: the square root does both.
const shade = (value) => Math.min(1, Math.sqrt(Math.max(0, value)));

// Rows of weights in [0, 1]: target words down the side, source words along the top.
export function heatmap({ values, columns, rows, current, colour, label, colors, size = 24 }) {
  const left = widest(rows) + 14;
  const slanted = widest(columns) * 0.82 + 18;
  const width = left + columns.length * size + slanted * 0.48 + 4;
  const height = slanted + rows.length * size + 6;
  const root = svg(Math.ceil(width), Math.ceil(height), label);
  columns.forEach((word, i) => {
    const strong = current >= 0 && (values[current]?.[i] ?? 0) > 0.25;
    const x = left + (i + 0.5) * size;
    root.append(text(x, slanted - 7, word, strong ? colors.ink : colors.soft, {
      transform: `rotate(-52 ${x} ${slanted - 7})`, bold: strong, italic: true,
    }));
  });
  rows.forEach((word, t) => {
    const y = slanted + t * size;
    const here = t === current;
    const opacity = t > current ? 0.16 : 1;
    root.append(text(left - 8, y + size / 2, word, here ? colors.ink : colors.soft, {
      anchor: "end", bold: here, baseline: "central",
    }));
    const line = element("g", { opacity });
    values[t].forEach((value, i) => {
      line.append(element("rect", {
        x: left + i * size, y, width: size - 1.5, height: size - 1.5, rx: 2, fill: colors.wash,
      }));
      line.append(element("rect", {
        x: left + i * size, y, width: size - 1.5, height: size - 1.5, rx: 2, fill: colour,
        "fill-opacity": shade(value), "data-tip": `${word} ← ${columns[i]}\n${number(value)}`,
        "data-step": t,
      }));
    });
    root.append(line);
    if (here) {
      root.append(element("rect", {
        x: left - 1.5, y: y - 1.5, width: columns.length * size + 1.5, height: size + 1.5, rx: 3,
        fill: "none", stroke: colors.mark, "stroke-width": 1.6,
      }));
    }
  });
  return root;
}

// Figures beside each other, as one.
export function beside(parts, titles, label, colors) {
  const top = 20;
  const gap = 14;
  const sizes = parts.map((part) => part.viewBox.baseVal);
  const width = sizes.reduce((sum, size) => sum + size.width + gap, -gap);
  const root = svg(width, top + Math.max(...sizes.map((size) => size.height)), label);
  let x = 0;
  parts.forEach((part, i) => {
    part.setAttribute("x", x);
    part.setAttribute("y", top);
    part.removeAttribute("role");
    part.removeAttribute("aria-label");
    root.append(text(x + 2, 13, titles[i], colors.soft, { size: 12, sans: true }), part);
    x += sizes[i].width + gap;
  });
  return root;
}

// Quantities over time, one below the other: time runs along x, a column a word.
// A band is {title, values [steps][n], rows?, curve?, colour, height?}.
export function timeline({ bands, words, boundary, current, label, colors }) {
  const column = Math.max(17, Math.min(23, Math.floor(460 / words.length)));
  const names = bands.flatMap((band) => band.rows ?? []);
  const left = Math.max(50, widest(names, 12) + 16);
  const slanted = widest(words) * 0.82 + 18;
  const heights = bands.map(bandHeight);
  const titles = widest(bands.map((band) => band.title), 11.5, SANS);
  const writes = boundary && boundary * column + 5 + widest([WRITES], 11, SANS);
  const width = left + 4 + Math.max(words.length * column + slanted * 0.48, titles, writes);
  const height = slanted + heights.reduce((a, b) => a + b + 24, 0) + (boundary ? 18 : 0);
  const root = svg(Math.ceil(width), Math.ceil(height), label);
  root.dataset.steps = "whole";
  words.forEach((word, i) => {
    const x = left + (i + 0.5) * column;
    const here = i === current;
    root.append(text(x, slanted - 7, word, here ? colors.ink : colors.soft, {
      transform: `rotate(-52 ${x} ${slanted - 7})`, bold: here, italic: i < boundary,
    }));
  });
  let y = slanted;
  bands.forEach((band, k) => {
    y += 17;
    root.append(text(left, y - 5, band.title, colors.soft, { size: 11.5, sans: true }));
    root.append(drawBand(band, { left, y, height: heights[k], words, current, colors, column }));
    y += heights[k] + 7;
  });
  const bottom = y;
  if (boundary) {
    const x = left + boundary * column - 1;
    root.append(element("line", {
      x1: x, x2: x, y1: slanted, y2: bottom, stroke: colors.soft, "stroke-dasharray": "2 3",
    }));
    root.append(text(x - 7, bottom + 11, "← reads", colors.soft, { size: 11, sans: true, anchor: "end" }));
    root.append(text(x + 6, bottom + 11, WRITES, colors.soft, { size: 11, sans: true }));
  }
  root.append(element("rect", {
    x: left + current * column - 1.5, y: slanted - 1, width: column + 1, height: bottom - slanted + 1,
    rx: 3, fill: "none", stroke: colors.mark, "stroke-width": 1.6, "pointer-events": "none", class: "mark",
  }));
  return root;
}

function bandHeight(band) {
  if (band.height) return band.height;
  if (band.curve) return 38;
  const count = band.values[0].length;
  return band.rows ? count * 15 : Math.max(18, Math.min(count * 7, 224));
}

function drawBand(band, { left, y, height, words, current, colors, column }) {
  const group = element("g");
  if (band.curve) {
    drawCurve(group, band, { left, y, height, words, current, colors, column });
    return group;
  }
  const count = band.values[0].length;
  const tall = height / count;
  band.rows?.forEach((row, n) => {
    group.append(text(left - 7, y + (n + 0.5) * tall, row, colors.soft, {
      anchor: "end", size: Math.min(12, tall + 1), baseline: "central", sans: !band.serif,
    }));
  });
  if (!band.rows && count > 1) {
    group.append(text(left - 7, y + 7, "slot 0", colors.soft, { anchor: "end", size: 10.5, sans: true }));
    group.append(text(left - 7, y + height - 2, String(count - 1), colors.soft, { anchor: "end", size: 10.5, sans: true }));
  }
  group.append(element("rect", {
    x: left, y, width: words.length * column - 1.5, height, rx: 2, fill: colors.wash,
  }));
  band.values.forEach((values, t) => {
    const opacity = t > current ? 0.14 : 1;
    values.forEach((value, n) => {
      const name = band.rows ? band.rows[n] : count > 1 ? `slot ${n}` : band.title;
      group.append(element("rect", {
        x: left + t * column, y: y + n * tall, width: column - 1.5, height: Math.max(1, tall - (tall > 8 ? 1.2 : 0.5)),
        fill: band.colour, "fill-opacity": (shade(value) * opacity).toFixed(3),
        "data-tip": `${words[t]} · ${name}\n${number(value)}`, "data-step": t,
      }));
    });
  });
  return group;
}

function drawCurve(group, band, { left, y, height, words, current, colors, column }) {
  const values = band.values.map((row) => row[0]);
  const low = band.from ?? 0;
  const high = Math.max(band.to ?? 0, low + 1e-6, ...values);
  const place = (value) => y + height - ((value - low) / (high - low)) * (height - 4) - 1;
  group.append(element("rect", {
    x: left, y, width: words.length * column - 1.5, height, rx: 2, fill: colors.wash,
  }));
  group.append(text(left - 7, y + 9, number(high), colors.soft, { anchor: "end", size: 10.5, sans: true }));
  group.append(text(left - 7, y + height - 1, String(low), colors.soft, { anchor: "end", size: 10.5, sans: true }));
  values.forEach((value, t) => {
    group.append(element("rect", {
      x: left + t * column, y: place(value), width: column - 1.5, height: y + height - place(value),
      fill: band.colour, "fill-opacity": t > current ? 0.12 : 0.75,
    }));
    group.append(element("rect", {
      x: left + t * column, y, width: column - 1.5, height, fill: "transparent",
      "data-tip": `${words[t]} · ${band.title}\n${number(value)}`, "data-step": t,
    }));
  });
}

// Slots as boxes that fill: how much was written so far, what is written and read now.
export function slots({ fill, write, read, names, label, colors, wide = 52 }) {
  const per = Math.max(1, Math.min(fill.length, Math.floor(Math.min(860, colors.room) / wide)));
  const lines = Math.ceil(fill.length / per);
  const tall = 62;
  const least = 2 / fill.length; // twice an equal share: else a blurred address would frame every slot
  const root = svg(per * wide + 4, lines * tall + 4, label);
  fill.forEach((value, n) => {
    const x = (n % per) * wide + 2;
    const y = Math.floor(n / per) * tall + 2;
    const box = wide - 6;
    const tip = `slot ${n}${names[n] ? ` · ${names[n]}` : ""}\nwritten so far ${number(value)}`
      + (write ? `\nwritten now ${number(write[n])}` : "") + (read ? `\nread now ${number(read[n])}` : "");
    root.append(element("rect", { x, y, width: box, height: 34, rx: 4, fill: colors.wash, "data-tip": tip }));
    root.append(element("rect", {
      x, y: y + 34 * (1 - value), width: box, height: 34 * value, rx: 4, fill: colors.soft,
      "fill-opacity": 0.38, "pointer-events": "none",
    }));
    for (const [weights, colour, inset] of [[write, colors.write, 0], [read, colors.read, 3.5]]) {
      if (!weights || weights[n] < least) continue;
      root.append(element("rect", {
        x: x + inset, y: y + inset, width: box - 2 * inset, height: 34 - 2 * inset, rx: 4 - inset / 2, fill: "none",
        stroke: colour, "stroke-width": 2.6, "stroke-opacity": shade(weights[n]).toFixed(3), "pointer-events": "none",
      }));
    }
    root.append(text(x + box / 2, y + 49, fitted(names[n] || "", box), names[n] ? colors.ink : colors.soft, {
      anchor: "middle", size: 11.5,
    }));
  });
  return root;
}

// Columns that fill up to a frame, or above it: one for each word.
export function levels({ words, frames, fills, names, label, colors }) {
  const column = 30;
  const unit = 44; // pixels for 1
  const left = 34;
  const slanted = widest(words) * 0.82 + 18;
  const most = Math.max(1, ...frames, ...fills);
  const bottom = slanted + most * unit + 4;
  const root = svg(Math.ceil(left + words.length * column + slanted * 0.48 + 4), Math.ceil(bottom + 4), label);
  for (let tick = 0; tick <= most; tick += 1) {
    const y = bottom - tick * unit;
    root.append(text(left - 8, y, String(tick), colors.soft, { anchor: "end", size: 10.5, sans: true, baseline: "central" }));
    root.append(element("line", { x1: left, x2: left + words.length * column - 6, y1: y, y2: y, stroke: colors.line }));
  }
  words.forEach((word, i) => {
    const x = left + i * column;
    const full = fills[i] >= 0.9 * frames[i];
    const box = (value, more) => element("rect", {
      x: x + 3, y: bottom - value * unit, width: column - 12, height: value * unit, rx: 2, ...more,
    });
    root.append(text(x + column / 2 - 3, slanted - 9, word, full ? colors.ink : colors.soft, {
      transform: `rotate(-52 ${x + column / 2 - 3} ${slanted - 9})`, bold: full, italic: true,
    }));
    root.append(box(fills[i], { fill: colors.write, "fill-opacity": 0.75 }));
    root.append(box(frames[i], { fill: "none", stroke: colors.ink, "stroke-width": 1.4 }));
    root.append(box(most, {
      fill: "transparent", "data-tip": `${word}\n${names[0]} ${number(frames[i])}\n${names[1]} ${number(fills[i])}`,
    }));
  });
  return root;
}

function fitted(word, width) {
  let shown = word;
  while (shown && widest([shown], 11.5) > width + 4) shown = shown.slice(0, -1);
  return shown === word ? word : `${shown.slice(0, -1)}…`;
}

// Words of a memory as tiles, the stronger their colour the greater the weight; `notes` for the pointer.
export function chips({ words, weights, notes, gate, empty, label, colors }) {
  const wide = Math.max(64, widest(words, 14) + 20);
  const per = Math.max(1, Math.min(words.length, Math.floor(Math.min(760, colors.room) / wide)));
  const lines = Math.ceil(words.length / per);
  const root = svg(Math.max(per * wide, 300) + 4, lines * 46 + 44, label);
  root.append(text(2, 14, `mixed in: λ = ${number(gate)}`, colors.ink, { size: 12.5, sans: true }));
  root.append(element("rect", { x: 132, y: 5, width: 150, height: 10, rx: 5, fill: colors.wash }));
  root.append(element("rect", {
    x: 132, y: 5, width: 150 * Math.min(1, gate), height: 10, rx: 5, fill: colors.write, "data-tip": `λ ${number(gate)}`,
  }));
  if (!words.length) root.append(text(2, 42, empty, colors.soft, { size: 13 }));
  words.forEach((word, i) => {
    const x = (i % per) * wide + 2;
    const y = Math.floor(i / per) * 46 + 30;
    root.append(element("rect", {
      x, y, width: wide - 8, height: 36, rx: 6, fill: colors.wash, "data-tip": `${word}\n${notes[i]}`,
    }));
    root.append(element("rect", {
      x, y, width: wide - 8, height: 36, rx: 6, fill: colors.read, "fill-opacity": (0.9 * shade(weights[i])).toFixed(3),
      "pointer-events": "none",
    }));
    root.append(text(x + (wide - 8) / 2, y + 19, word, weights[i] > 0.45 ? colors.card : colors.ink, {
      anchor: "middle", size: 14, baseline: "central",
    }));
  });
  return root;
}

const LARGEST_SIDE = 16000; // pixels: browsers give no picture of a larger canvas

export function saveAs(figure, name, kind, background) {
  const copy = figure.cloneNode(true);
  const { width, height } = figure.viewBox.baseVal;
  copy.prepend(element("rect", { width, height, fill: background }));
  const source = new XMLSerializer().serializeToString(copy);
  const file = new Blob([source], { type: "image/svg+xml" });
  if (kind === "svg") return download(file, `${name}.svg`);
  const picture = new Image();
  picture.onload = () => {
    const canvas = document.createElement("canvas");
    const scale = Math.min(2, LARGEST_SIDE / Math.max(width, height));
    canvas.width = scale * width;
    canvas.height = scale * height;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.drawImage(picture, 0, 0);
    canvas.toBlob((blob) => download(blob, `${name}.png`), "image/png");
    URL.revokeObjectURL(picture.src);
  };
  picture.src = URL.createObjectURL(file);
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
