const MILLISECONDS = new Map([
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

export const parseDuration = (text: string): number | undefined => {
  const [, number = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const factor = MILLISECONDS.get(unit);
  return factor === undefined ? undefined : Number(number) * factor;
};

const LARGEST_FIRST: readonly (readonly [unit: string, milliseconds: number])[] = [...MILLISECONDS].reverse();

export const durationText = (milliseconds: number): string => {
  const [unit, factor] = LARGEST_FIRST.find(([, size]) => milliseconds >= 2 * size) ?? ["ms", 1];
  return `${unit === "s" ? (milliseconds / factor).toFixed(1) : Math.round(milliseconds / factor)} ${unit}`;
};
