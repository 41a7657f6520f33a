export const distance = (from: string, to: string): number => {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= from.length; i += 1) {
    const [before, last] = [rows[i - 2], rows[i - 1]!];
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replace = last[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      const swapped = from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const swap = before !== undefined && swapped ? before[j - 2]! + 1 : Infinity;
      row.push(Math.min(replace, swap, last[j]! + 1, row[j - 1]! + 1));
    }
    rows.push(row);
  }
  return rows[from.length]![to.length]!;
};

const WRONG_AT_MOST = 1 / 3;
const LETTERS_AT_MOST = 100;

/** Ignores case. */
export const nearestWord = (word: string, words: readonly string[]): string | undefined => {
  if (word.length > LETTERS_AT_MOST) return undefined;
  const near = words
    .map((other) => ({ other, edits: distance(word.toLowerCase(), other.toLowerCase()) }))
    .filter(({ other, edits }) => edits <= Math.max(word.length, other.length) * WRONG_AT_MOST)
    .sort((one, two) => one.edits - two.edits);
  return near[0]?.other;
};
