/** Code, escaped characters, displayed and inline math, and single signs. Prices such as $5 are no math. */
const PIECES = /(`+)[^]*?\1|\\[^]|\$\$[^$]+\$\$|\$(?![\s$])(?:[^$\n`\\]|\\[^\n])*?(?<!\s)\$(?!\d)|\$/g;

/** More formulas would block the page. */
const FORMULAS_AT_MOST = 200;

const isMath = (piece: string): boolean => piece.startsWith("$") && piece.length > 2;

/**
 * The text with every sign that is no math escaped, and displayed formulas on lines of their own.
 * Undefined without math.
 */
export const mathIn = (text: string): string | undefined => {
  if (!text.includes("$")) return undefined;
  let formulas = 0;
  const marked = text.replace(PIECES, (piece: string, _ticks: unknown, start: number) => {
    if (piece === "$") return "\\$";
    if (!isMath(piece)) return piece;
    formulas += 1;
    if (!piece.startsWith("$$")) return piece;
    const end = start + piece.length;
    const isAlone = (start === 0 || text[start - 1] === "\n") && (end === text.length || text[end] === "\n");
    return isAlone ? `$$\n${piece.slice(2, -2).trim()}\n$$` : piece;
  });
  return formulas === 0 || formulas > FORMULAS_AT_MOST ? undefined : marked;
};
