/** The lower quartile of each figure. A server's periodic work raises some of the tries, and the minimum may be a rare one. */
export const typicalOf = <Figure extends string>(
  tries: readonly Readonly<Record<Figure, number>>[],
): Record<Figure, number> => {
  const names = Object.keys(tries[0] ?? {}) as Figure[];
  const quartile = (name: Figure): number =>
    tries.map((figures) => figures[name]).sort((a, b) => a - b)[Math.floor((tries.length - 1) / 4)]!;
  return Object.fromEntries(names.map((name) => [name, quartile(name)])) as Record<Figure, number>;
};
