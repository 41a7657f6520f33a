export interface Check {
  level: "ok" | "info" | "warn" | "fail";
  name: string;
  text: string;
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

/** The level is a word, so it is readable without colours. */
export const checkText = ({ level, name, text, advice }: Check): string =>
  `${level.toUpperCase().padEnd(LEVEL_COLUMN)}${name.padEnd(NAME_COLUMN)}${indented(text)}\n` +
  (advice === undefined ? "" : `${" ".repeat(LEVEL_COLUMN + NAME_COLUMN)}-> ${indented(advice)}\n`);
