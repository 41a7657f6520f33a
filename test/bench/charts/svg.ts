/**
 * The parts of SVG that the charts need, as text. Libraries that draw without a browser (Vega, ECharts) are many times larger, and d3's
 * scales and shapes would save twenty lines.
 */

export const WIDTH = 760;
/** Left and right of the chart. */
export const MARGIN = 24;

/** A reader's scheme may differ from the page's, so the picture has a background of its own. */
const STYLE = `
    svg { color-scheme: light dark; font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
    .ground { fill: #ffffff; stroke: #d0d7de; }
    text { fill: #1f2328; font-size: 13px; }
    .title { font-size: 17px; font-weight: 600; }
    .strong { font-weight: 600; }
    .over { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
    .quiet { fill: #59636e; font-size: 12px; }
    .grid { stroke: #d8dee4; }
    .reference { stroke: #59636e; stroke-dasharray: 4 3; }
    .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round; }
    .threadloom { --ink: #0969da; } .official { --ink: #bc4c00; } .none { --ink: #818b98; } .memory { --ink: #6e7781; } .peer { --ink: #8250df; }
    .bar { fill: var(--ink); } .line { stroke: var(--ink); } .official.line { stroke-dasharray: 7 4; } .peer.line { stroke-dasharray: 2 5; }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #0d1117; stroke: #3d444d; }
      text { fill: #f0f6fc; }
      .over { stroke: #0d1117; }
      .quiet { fill: #9198a1; }
      .grid { stroke: #2a313c; }
      .reference { stroke: #9198a1; }
      .threadloom { --ink: #4493f8; } .official { --ink: #f0883e; } .none { --ink: #7d8590; } .memory { --ink: #9198a1; } .peer { --ink: #ab7df8; }
    }`;

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};
export const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => ESCAPES[sign]!);

/** A tenth of a pixel without trailing zeros, so equal figures give equal text. */
const pixels = (value: number): string => String(Math.round(value * 10) / 10);

type Attributes = Readonly<Record<string, string | number>>;
export const element = (name: string, attributes: Attributes, content?: string): string => {
  const written = Object.entries(attributes)
    .map(([key, value]) => ` ${key}="${typeof value === "number" ? pixels(value) : escaped(value)}"`)
    .join("");
  return content === undefined ? `<${name}${written}/>` : `<${name}${written}>${content}</${name}>`;
};

interface Style {
  /** Classes of the style sheet; `over`: lines behind the text are interrupted around it. */
  look?: string;
  anchor?: "start" | "middle" | "end";
}

/** `y` is the base line. */
export const text = (x: number, y: number, words: string, { look, anchor }: Style = {}): string =>
  element(
    "text",
    { x, y, ...(look && { class: look }), ...(anchor && { "text-anchor": anchor }) },
    escaped(words),
  );

export const line = (x1: number, y1: number, x2: number, y2: number, look: string): string =>
  element("line", { x1, y1, x2, y2, class: look });

/** Lines of at most this many characters, broken between words. */
export const wrapped = (words: string, characters: number): string[] => {
  const lines: string[] = [];
  for (const word of words.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= characters)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
};

/** About `count` round numbers from 0 on, the last of which is not below `highest`. */
export const ticks = (highest: number, count = 5): number[] => {
  const rough = Math.max(highest, Number.MIN_VALUE) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  // Multiplied, not added up: 0.1 + 0.2 is not a round number.
  return Array.from({ length: Math.ceil(highest / step - 1e-9) + 1 }, (_, index) =>
    Number((index * step).toPrecision(12)),
  );
};

/** Characters of a caption line: they fit into WIDTH in any usual font. */
const CAPTION_CHARACTERS = 112;
const CAPTION_LINE = 17;

export interface Chart {
  title: string;
  subtitle: string;
  /** The content of the chart in words, for readers who can't see it. */
  description: string;
  /** Below the chart: the method and the machine. */
  caption: string[];
  /** Height of `content`, which begins at y = 0 below the titles. */
  height: number;
  content: string[];
}

const HEADER = 72;

export const svgOf = ({ title, subtitle, description, caption, height, content }: Chart): string => {
  const captionLines = caption.flatMap((sentence) => wrapped(sentence, CAPTION_CHARACTERS));
  const captionTop = HEADER + height + 26;
  const whole = captionTop + captionLines.length * CAPTION_LINE;
  const parts = [
    element("title", { id: "title" }, escaped(title)),
    element("desc", { id: "desc" }, escaped(description)),
    element("style", {}, `${STYLE}\n  `),
    element("rect", { x: 0.5, y: 0.5, width: WIDTH - 1, height: whole - 1, rx: 8, class: "ground" }),
    text(MARGIN, 34, title, { look: "title" }),
    text(MARGIN, 55, subtitle, { look: "quiet" }),
    element("g", { transform: `translate(0 ${HEADER})` }, `\n    ${content.join("\n    ")}\n  `),
    ...captionLines.map((words, index) =>
      text(MARGIN, captionTop + index * CAPTION_LINE, words, { look: "quiet" }),
    ),
  ];
  const attributes = {
    xmlns: "http://www.w3.org/2000/svg",
    width: WIDTH,
    height: whole,
    viewBox: `0 0 ${WIDTH} ${whole}`,
    role: "img",
    "aria-labelledby": "title desc",
  };
  return `${element("svg", attributes, `\n  ${parts.join("\n  ")}\n`)}\n`;
};
