import { formatNumber } from "../report.ts";
import type { ContenderName, Results, Series } from "../results.ts";
import { NAMES, originOf } from "./origin.ts";
import { element, line, MARGIN, svgOf, text, ticks, WIDTH } from "./svg.ts";

/** In this order. Without a saver no state is kept between turns, and the memory saver's conversations are short. */
const SHOWN: readonly ContenderName[] = ["threadloom", "official", "peer"];

const LEFT = MARGIN + 54;
const NAMES_WIDTH = 206;
const RIGHT = WIDTH - MARGIN - NAMES_WIDTH;
const TOP = 8;
const BOTTOM = 268;
/** Two lines of text: name and value. */
const NAME_HEIGHT = 38;

/** Points are marked up to this number, because values between them were not measured. */
const MARKED_AT_MOST = 12;

type Points = [turn: number, milliseconds: number][];
interface Line {
  name: ContenderName;
  points: Points;
}

/** Of the longest conversation, if this server was measured in it. */
const linesOf = ({ series }: Results): Line[] => {
  const turnsOf = ({ points }: Series): number => points.threadloom?.at(-1)?.[0] ?? 0;
  const longest = series
    .filter(({ scenario, unit }) => scenario === "long-thread" && unit === "ms/turn")
    .reduce<Series | undefined>(
      (best, one) => (turnsOf(one) > (best === undefined ? 0 : turnsOf(best)) ? one : best),
      undefined,
    );
  return SHOWN.flatMap((name) => {
    const points = longest?.points[name] ?? [];
    return points.length > 1 ? [{ name, points }] : [];
  });
};

/** The position of each name: beside the end of its line, without overlapping another name, the title or the axis. */
const nameHeights = (ends: readonly number[]): number[] => {
  const heights = new Array<number>(ends.length);
  const fromAbove = [...ends.keys()].sort((one, other) => ends[one]! - ends[other]!);
  let highest = TOP;
  for (const index of fromAbove) {
    heights[index] = Math.max(ends[index]!, highest);
    highest = heights[index] + NAME_HEIGHT;
  }
  let lowest = BOTTOM - NAME_HEIGHT / 2 + 6;
  for (const index of fromAbove.toReversed()) {
    heights[index] = Math.min(heights[index]!, lowest);
    lowest = heights[index] - NAME_HEIGHT;
  }
  return heights;
};

/** Lines of the time of a turn over the length of a conversation; undefined if not measured. */
export const drawTurns = (results: Results): string | undefined => {
  const lines = linesOf(results);
  if (lines.length === 0) return undefined;
  const turns = Math.max(...lines.map(({ points }) => points.at(-1)![0]));
  const marksOfTurns = ticks(turns);
  const marks = ticks(Math.max(...lines.flatMap(({ points }) => points.map(([, value]) => value))));
  const xOf = (turn: number): number => LEFT + (turn / marksOfTurns.at(-1)!) * (RIGHT - LEFT);
  const yOf = (value: number): number => BOTTOM - (value / marks.at(-1)!) * (BOTTOM - TOP);

  const heights = nameHeights(lines.map(({ points }) => yOf(points.at(-1)![1])));
  const drawn = lines.flatMap(({ name, points }, index) => {
    const [lastTurn, lastValue] = points.at(-1)!;
    const x = xOf(lastTurn) + 12;
    return [
      element("polyline", {
        points: points.map(([turn, value]) => `${xOf(turn).toFixed(1)},${yOf(value).toFixed(1)}`).join(" "),
        class: `${name} line`,
      }),
      ...(points.length > MARKED_AT_MOST
        ? []
        : points.map(([turn, value]) =>
            element("circle", { cx: xOf(turn), cy: yOf(value), r: 4, class: `${name} bar` }),
          )),
      text(x, heights[index]! - 3, NAMES[name], { look: "strong" }),
      text(x, heights[index]! + 14, `${formatNumber(lastValue)} ms at the end`),
    ];
  });
  const axes = [
    ...marks.flatMap((mark) => [
      line(LEFT, yOf(mark), RIGHT, yOf(mark), "grid"),
      text(LEFT - 8, yOf(mark) + 4, `${mark.toLocaleString("en-US")} ms`, { look: "quiet", anchor: "end" }),
    ]),
    ...marksOfTurns.map((mark) =>
      text(xOf(mark), BOTTOM + 18, mark === 0 ? "turn 0" : mark.toLocaleString("en-US"), {
        look: "quiet",
        anchor: "middle",
      }),
    ),
  ];
  return svgOf({
    title: "What a turn takes as its conversation gets longer",
    subtitle: "Milliseconds per turn, over the number of the turn; lower is better",
    description: lines
      .map(({ name, points }) => {
        const [firstTurn, first] = points[0]!;
        const [lastTurn, last] = points.at(-1)!;
        return `${NAMES[name]}: ${formatNumber(first)} ms around turn ${firstTurn}, ${formatNumber(last)} ms around turn ${lastTurn}.`;
      })
      .join(" "),
    caption: [
      "A turn is a question of 150 characters and an answer of 100. Threadloom streams updates over HTTP; LangGraph.js runs " +
        "with @langchain/langgraph-checkpoint-postgres in the client's process, on the same PostgreSQL. Each point is the median of the turns around it.",
      // Conversations are not repeated.
      originOf(results, "One measurement"),
    ],
    height: BOTTOM + 26,
    content: [...axes, ...drawn],
  });
};
