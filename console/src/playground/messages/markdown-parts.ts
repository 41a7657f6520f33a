/** A part of a text that is parsed separately. */
export interface TextPart {
  text: string;
  /** `code`: a top-level code block, not parsed; `plain`: too expensive to parse. */
  kind: "formatted" | "code" | "plain";
  /** Of a code block. */
  language?: string;
  /** Whether the end of the code block has not arrived. */
  isOpen?: boolean;
}

const FENCE = /^(`{3,}|~{3,})([^`]*)$/;

/** E.g. `c++`, `objective-c`; the rest of the line is for other programs. */
const LANGUAGE = /^[\w+#.-]{1,30}/;

/** Other first characters may continue a list, a table or a quotation. */
const STARTS_BLOCK = /^[^\s\-*+\d|>]/;

/** Splits at top-level code blocks, and at empty lines outside of code blocks. */
const stretchesOf = (text: string): TextPart[] => {
  const parts: TextPart[] = [];
  let lines: string[] = [];
  let fence: string | undefined;
  let language: string | undefined;
  /** In a code block within a list or a quotation. A rough guess is enough to keep the block whole. */
  let isInInnerCode = false;
  const end = (kind: TextPart["kind"], isOpen = false): void => {
    if (lines.length > 0)
      parts.push({
        ...{ text: lines.join("\n"), kind },
        ...(kind === "code" && language !== undefined && { language }),
        ...(isOpen && { isOpen }),
      });
    lines = [];
  };
  const all = text.split("\n");
  all.forEach((line, index) => {
    if (fence !== undefined) {
      if (line.trimEnd().startsWith(fence) && line.trim().replaceAll(fence.charAt(0), "") === "") {
        // Keeps an empty code block.
        if (lines.length === 0) lines.push("");
        end("code");
        fence = undefined;
      } else lines.push(line);
      return;
    }
    const [, opened, named = ""] = FENCE.exec(line) ?? [];
    if (opened !== undefined) {
      end("formatted");
      fence = opened;
      language = LANGUAGE.exec(named.trim())?.[0];
      isInInnerCode = false;
      return;
    }
    lines.push(line);
    if (/^ +(```|~~~)/.test(line)) isInInnerCode = !isInInnerCode;
    const next = all[index + 1];
    if (!isInInnerCode && line.trim() === "" && next !== undefined && STARTS_BLOCK.test(next))
      end("formatted");
  });
  end(fence === undefined ? "formatted" : "code", fence !== undefined);
  return parts;
};

/** 50 nested lists or quotations. The parser takes seconds for a thousand and minutes for more. */
const NESTED_DEEPLY = /^(?:[ \t]*(?:>|[*+-][ \t]|\d{1,9}[.)][ \t])){50}/m;
const INDENTED_DEEPLY = /^[ \t]{100}/m;

const MARKS = /[*_~`[\]<>|#()&@\\:+!-]/g;
/** Per line, in marks. */
const WEIGHT_OF_LINE = 3;
/** Per part. The parser takes half a second for the worst case. */
const WEIGHT_AT_MOST = 2_000;
/** Each part costs one or two milliseconds, so short parts are joined up to this weight. */
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

/** Links and footnotes of other parts refer to definitions. */
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;

/** @returns the whole text if it has definitions and is short enough to parse at once */
const asOne = (text: string): Weighed[] | undefined => {
  const weight = weightOf(text);
  return DEFINITION.test(text) && weight <= WEIGHT_AT_MOST
    ? [{ text, kind: "formatted", weight }]
    : undefined;
};

/**
 * Splits a text so that new text changes only the last part. The parser's time grows with the square of the
 * marks in a part, so expensive parts stay plain and any text blocks the page for less than a second.
 */
export const partsOf = (whole: string, isGrowing: boolean): TextPart[] => {
  let spent = 0;
  const parts = (isGrowing ? undefined : asOne(whole)) ?? together(stretchesOf(whole));
  return parts.map(({ weight, ...part }) => {
    const { text, kind } = part;
    const cost = weight ** 2;
    const isTooMuch =
      kind === "formatted" &&
      (spent + cost > WEIGHT_AT_MOST ** 2 || NESTED_DEEPLY.test(text) || INDENTED_DEEPLY.test(text));
    if (isTooMuch) return { text, kind: "plain" };
    spent += cost;
    return part;
  });
};
