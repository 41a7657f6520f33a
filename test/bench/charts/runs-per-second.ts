import { median, RUNS_PER_SECOND, WIDTH as AT_A_TIME } from "../load.ts";
import { formatNumber } from "../report.ts";
import type { ContenderName, Results } from "../results.ts";
import { NAMES, originOf, repeatsOf } from "./origin.ts";
import { element, line, MARGIN, svgOf, text, ticks, WIDTH } from "./svg.ts";

const GROUPS = [
  ["wait", "Graph of two steps"],
  ["ten-steps", "Graph of ten steps"],
] as const;
/** In this order; a contender without a measurement has no bar. */
const SHOWN: readonly ContenderName[] = ["threadloom", "official", "none", "peer"];

const BARS_LEFT = 234;
/** Beside the longest bar, for its figures. */
const FIGURES_WIDTH = 140;
const BARS_WIDTH = WIDTH - MARGIN - FIGURES_WIDTH - BARS_LEFT;
const ROW = 26;
const BAR = 16;
const GROUP_HEADING = 26;
const GROUP_GAP = 14;

const ratioOf = (ratio: number): string => `${ratio.toFixed(ratio >= 10 ? 0 : 2)}×`;

interface Bar {
  name: ContenderName;
  perSecond: number;
  ratio: number;
}
interface Group {
  heading: string;
  bars: Bar[];
}

const groupsOf = ({ figures }: Results): Group[] =>
  GROUPS.flatMap(([scenario, heading]) => {
    const values = figures.find(
      (figure) => figure.scenario === scenario && figure.label === RUNS_PER_SECOND,
    )?.values;
    const perSecondOf = (name: ContenderName): number => median(values?.[name] ?? []);
    const official = perSecondOf("official");
    const bars = SHOWN.map((name) => {
      const perSecond = perSecondOf(name);
      return { name, perSecond, ratio: perSecond / official };
    }).filter(({ ratio }) => Number.isFinite(ratio));
    return bars.some(({ name }) => name === "threadloom") ? [{ heading, bars }] : [];
  });

/** Bars of runs per second, as multiples of the official saver's; undefined if that was not measured. */
export const drawRunsPerSecond = (results: Results): string | undefined => {
  const groups = groupsOf(results);
  if (groups.length === 0) return undefined;
  const marks = ticks(Math.max(1, ...groups.flatMap(({ bars }) => bars.map(({ ratio }) => ratio))));
  const highest = marks.at(-1)!;
  const xOf = (ratio: number): number => BARS_LEFT + (ratio / highest) * BARS_WIDTH;

  const rows: string[] = [];
  let y = 0;
  for (const { heading, bars } of groups) {
    rows.push(text(MARGIN, y + 17, heading, { look: "strong" }));
    y += GROUP_HEADING;
    for (const { name, perSecond, ratio } of bars) {
      const middle = y + ROW / 2;
      const look = name === "threadloom" ? "strong" : "";
      const figures = `${ratioOf(ratio)} · ${formatNumber(perSecond)} runs/s`;
      rows.push(
        text(BARS_LEFT - 10, middle + 4.5, NAMES[name], { look, anchor: "end" }),
        element("rect", {
          x: BARS_LEFT,
          y: middle - BAR / 2,
          width: Math.max(1, xOf(ratio) - BARS_LEFT),
          height: BAR,
          rx: 2,
          class: `${name} bar`,
        }),
        text(xOf(ratio) + 8, middle + 4.5, figures, { look: `${look} over`.trim() }),
      );
      y += ROW;
    }
    y += GROUP_GAP;
  }
  const bottom = y - GROUP_GAP / 2;
  const axis = marks.flatMap((mark) => [
    line(xOf(mark), 0, xOf(mark), bottom, "grid"),
    text(xOf(mark), bottom + 18, `${mark}×`, { look: "quiet", anchor: "middle" }),
  ]);

  const hasPeer = groups.some(({ bars }) => bars.some(({ name }) => name === "peer"));
  return svgOf({
    title: "Runs per second, beside LangGraph.js alone",
    subtitle: `${AT_A_TIME} at a time, each on a new thread, as multiples of the official Postgres saver's (1×); longer is better`,
    description: groups
      .map(
        ({ heading, bars }) =>
          `${heading}: ${bars
            .map(
              ({ name, perSecond, ratio }) =>
                `${NAMES[name]} ${formatNumber(perSecond)} runs per second (${ratioOf(ratio)})`,
            )
            .join(", ")}.`,
      )
      .join(" "),
    caption: [
      "Threadloom answers over HTTP and stores each run durably. LangGraph.js alone runs in the client's process, without HTTP and a queue; " +
        `with no saver its state is gone after the run.${hasPeer ? " The dev server (@langchain/langgraph-api) answers over HTTP and keeps all in memory." : ""}`,
      originOf(results, repeatsOf(results)),
    ],
    height: bottom + 24,
    content: [...axis, line(xOf(1), 0, xOf(1), bottom, "reference"), ...rows],
  });
};
