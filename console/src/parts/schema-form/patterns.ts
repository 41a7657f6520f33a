/** An upper bound in steps: `factor` times the length of the text to the power of `power`. */
interface Cost {
  power: number;
  factor: number;
}

const QUANTIFIER = /^(?:[*+?]|\{(\d+)(,(\d*))?\})\??/;
const FREE: Cost = { power: 0, factor: 1 };
const product = (one: Cost, other: Cost): Cost => ({
  power: one.power + other.power,
  factor: one.factor * other.factor,
});
const isFree = ({ power, factor }: Cost): boolean => power === 0 && factor === 1;

/** Undefined if the ways to match multiply with the text: `(a+)+`, `(a|b)*`. */
const repeated = (cost: Cost, quantifier: RegExpExecArray): Cost | undefined => {
  const [text, least, comma, most] = quantifier;
  if (text.startsWith("?")) return product(cost, { power: 0, factor: 2 });
  const isEndless = least === undefined || (comma !== undefined && most === "");
  if (isEndless) return isFree(cost) ? { power: 1, factor: 1 } : undefined;
  const times = Number(most ?? least);
  return {
    power: cost.power * times,
    factor: cost.factor ** times * (comma === undefined ? 1 : times - Number(least) + 1),
  };
};

/** Judges only the syntax: may reject a harmless pattern, but accepts no dangerous one. */
const costOf = (pattern: string): Cost | undefined => {
  const open: { cost: Cost; alternatives: number }[] = [{ cost: FREE, alternatives: 1 }];
  let at = 0;
  while (at < pattern.length) {
    const group = open.at(-1);
    if (group === undefined) return undefined;
    const character = pattern.charAt(at);
    let atom = FREE;
    if (character === "(") {
      open.push({ cost: FREE, alternatives: 1 });
      at += /^\((?:\?(?:[:=!]|<[=!]|<\w+>))?/.exec(pattern.slice(at))?.[0].length ?? 1;
      continue;
    }
    if (character === "|") {
      group.alternatives += 1;
      at += 1;
      continue;
    }
    if (character === ")") {
      open.pop();
      atom = product(group.cost, { power: 0, factor: group.alternatives });
      at += 1;
    } else if (character === "\\") {
      if (/[1-9k]/.test(pattern.charAt(at + 1))) return undefined;
      at += 2;
    } else if (character === "[") {
      const end = /^\[(?:\\.|[^\]\\])*\]/s.exec(pattern.slice(at));
      if (end === null) return undefined;
      at += end[0].length;
    } else at += 1;
    const quantifier = QUANTIFIER.exec(pattern.slice(at));
    const cost = quantifier === null ? atom : repeated(atom, quantifier);
    at += quantifier?.[0].length ?? 0;
    const around = open.at(-1);
    if (cost === undefined || around === undefined) return undefined;
    around.cost = product(around.cost, cost);
  }
  const [whole] = open;
  if (whole === undefined || open.length > 1) return undefined;
  // An unanchored pattern is tried at each position.
  const isAnchored = pattern.startsWith("^") && whole.alternatives === 1;
  return product(whole.cost, { power: isAnchored ? 0 : 1, factor: whole.alternatives });
};

const LONGEST_PATTERN = 2_000;
/** Each check compiles the pattern. */
const STEPS_COMPILED = 10;

/** An upper bound in steps; Infinity if none is known. */
export const stepsOf = (pattern: string): ((characters: number) => number) => {
  const cost = pattern.length > LONGEST_PATTERN ? undefined : costOf(pattern);
  return (characters) =>
    cost === undefined
      ? Infinity
      : STEPS_COMPILED * pattern.length + cost.factor * Math.max(characters, 2) ** cost.power;
};
