/** What came of looking at one thing. */
export interface Check {
  level: "ok" | "info" | "warn" | "fail";
  /** What was looked at, e.g. "Node.js". */
  name: string;
  /** What was found. */
  text: string;
  /** What to do about it; undefined where there is nothing to do. */
  advice?: string | undefined;
}

export const ok = (name: string, text: string): Check => ({ level: "ok", name, text });
export const info = (name: string, text: string): Check => ({ level: "info", name, text });
export const warn = (name: string, text: string, advice: string): Check => ({
  level: "warn",
  name,
  text,
  advice,
});
export const fail = (name: string, text: string, advice: string): Check => ({
  level: "fail",
  name,
  text,
  advice,
});

const NAME_COLUMN = 16;
const LEVEL_COLUMN = 6;
const indented = (text: string): string =>
  text.trim().replaceAll("\n", `\n${" ".repeat(LEVEL_COLUMN + NAME_COLUMN)}`);

/** A line for each: the level as a word, so that nothing is lost without colours; below it what to do. */
export const checkText = ({ level, name, text, advice }: Check): string =>
  `${level.toUpperCase().padEnd(LEVEL_COLUMN)}${name.padEnd(NAME_COLUMN)}${indented(text)}\n` +
  (advice === undefined ? "" : `${" ".repeat(LEVEL_COLUMN + NAME_COLUMN)}-> ${indented(advice)}\n`);
