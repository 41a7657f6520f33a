/** Callers' text must not control the terminal. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, "?");

export const printableLines = (text: string): string => text.replace(/(?![\n\t])[\p{Cc}\p{Cf}]/gu, "?");

const SHORTEST = 8;
const GAP = 2;

export const cut = (text: string, width: number): string => {
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, width - 1).join("")}…`;
};

/**
 * Cuts the widest column until the rows fit.
 * @param columns undefined: cuts nothing, because a script may read the output
 */
export const tableText = (
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number | undefined,
): string => {
  const lines = [titles, ...rows].map((row) => row.map(printable));
  const widths = titles.map((_, at) => Math.max(...lines.map((line) => [...(line[at] ?? "")].length)));
  const whole = (): number => widths.reduce((sum, width) => sum + width, GAP * (widths.length - 1));
  for (let over = whole() - (columns ?? Infinity); over > 0; over = whole() - (columns ?? Infinity)) {
    const widest = widths.indexOf(Math.max(...widths));
    const width = widths[widest] ?? 0;
    if (width <= SHORTEST) break;
    widths[widest] = Math.max(SHORTEST, width - over);
  }
  return lines
    .map((line) =>
      line.map((text, at) => cut(text, widths[at] ?? 0).padEnd(widths[at] ?? 0)).join(" ".repeat(GAP)),
    )
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
};

export const fieldsText = (fields: readonly (readonly [name: string, value: string])[]): string => {
  const width = Math.max(...fields.map(([name]) => name.length)) + GAP;
  return fields.map(([name, value]) => `${name.padEnd(width)}${printable(value)}\n`).join("");
};
