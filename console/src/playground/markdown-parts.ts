/** A stretch of a text that is read on its own. */
export interface TextPart {
  text: string;
  /** `code`: what stands in a block of code at the margin, which nothing has to read; `plain`: what would take too long to read. */
  kind: "formatted" | "code" | "plain";
}

const FENCE = /^(`{3,}|~{3,})([^`]*)$/;

/** A line that goes on a list, a table or a quotation would be taken from it. */
const STARTS_BLOCK = /^[^\s\-*+\d|>]/;

/** The parts of a text. They end at blocks of code that stand at the margin, and at empty lines that stand in no block of code. */
const stretchesOf = (text: string): TextPart[] => {
  const parts: TextPart[] = [];
  let lines: string[] = [];
  let fence: string | undefined;
  /** Of a block of code that stands within a list or a quotation; taken as it looks, which is enough to leave it whole. */
  let isInInnerCode = false;
  const end = (kind: TextPart["kind"]): void => {
    if (lines.length > 0) parts.push({ text: lines.join("\n"), kind });
    lines = [];
  };
  const all = text.split("\n");
  all.forEach((line, index) => {
    if (fence !== undefined) {
      if (line.trimEnd().startsWith(fence) && line.trim().replaceAll(fence.charAt(0), "") === "") {
        // A block without a line is one, too.
        if (lines.length === 0) lines.push("");
        end("code");
        fence = undefined;
      } else lines.push(line);
      return;
    }
    const [, opened] = FENCE.exec(line) ?? [];
    if (opened !== undefined) {
      end("formatted");
      fence = opened;
      isInInnerCode = false;
      return;
    }
    lines.push(line);
    if (/^ +(```|~~~)/.test(line)) isInInnerCode = !isInInnerCode;
    const next = all[index + 1];
    if (!isInInnerCode && line.trim() === "" && next !== undefined && STARTS_BLOCK.test(next))
      end("formatted");
  });
  end(fence === undefined ? "formatted" : "code");
  return parts;
};

/** Fifty lists or quotations within one another: what reads Markdown takes seconds for a thousand, and minutes for more. */
const NESTED_DEEPLY = /^(?:[ \t]*(?:>|[*+-][ \t]|\d{1,9}[.)][ \t])){50}/m;
const INDENTED_DEEPLY = /^[ \t]{100}/m;

const MARKS = /[*_~`[\]<>|#()&@\\:+!-]/g;
/** Of a line, in marks. */
const WEIGHT_OF_LINE = 3;
/** Of one part: what reads Markdown takes half a second for the worst of so many marks. */
const WEIGHT_AT_MOST = 2_000;
/** Each part costs a millisecond or two, however short it is: they are read together up to this weight. */
const WEIGHT_TOGETHER = 200;

const weightOf = (text: string): number =>
  (text.match(MARKS)?.length ?? 0) + WEIGHT_OF_LINE * text.split("\n").length;

interface Weighed extends TextPart {
  weight: number;
}

const together = (parts: readonly TextPart[]): Weighed[] => {
  const joined: Weighed[] = [];
  for (const part of parts) {
    const weight = part.kind === "code" ? 0 : weightOf(part.text);
    const last = joined.at(-1);
    if (last?.kind === "formatted" && part.kind === "formatted" && last.weight + weight <= WEIGHT_TOGETHER) {
      last.text += `\n${part.text}`;
      last.weight += weight;
    } else joined.push({ ...part, weight });
  }
  return joined;
};

/** They are used in other parts: a link by its name, a footnote. */
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;

/** @returns the whole text, if its parts can't be read one by one, and it is no longer than can be read at once */
const asOne = (text: string): Weighed[] | undefined => {
  const weight = weightOf(text);
  return DEFINITION.test(text) && weight <= WEIGHT_AT_MOST
    ? [{ text, kind: "formatted", weight }]
    : undefined;
};

/**
 * A text in parts, in whose order they are shown; what is added to a text changes only the last of them. The time that a part takes to be
 * read grows with the square of its marks, so parts with too many are left as they were written, and so are those that come after too many
 * of them: whatever stands in a text, it blocks the page for less than a second.
 */
export const partsOf = (whole: string, isGrowing: boolean): TextPart[] => {
  let spent = 0;
  const parts = (isGrowing ? undefined : asOne(whole)) ?? together(stretchesOf(whole));
  return parts.map(({ text, kind, weight }) => {
    const cost = weight ** 2;
    const isTooMuch =
      kind === "formatted" &&
      (spent + cost > WEIGHT_AT_MOST ** 2 || NESTED_DEEPLY.test(text) || INDENTED_DEEPLY.test(text));
    if (isTooMuch) return { text, kind: "plain" };
    spent += cost;
    return { text, kind };
  });
};
