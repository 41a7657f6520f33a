/**
 * `npm run test:mutation [-- options]`: puts one small fault after the other into a copy of the source and checks whether a
 * test fails. A surviving fault shows a missing test, or unnecessary code.
 *
 *   --kind sql|code      only statements of SQL, or only TypeScript
 *   --file TEXT          only files whose path contains this
 *   --place TEXT         only the statement or function of this name
 *   --operator TEXT      only this kind of change
 *   --line N, --line N-M only faults in this line, or in these lines
 *   --tests A,B          only these test files, such as engine/queue
 *   --sample N           a random sample of this size
 *   --seed N             the seed of the sample; printed with each run, to repeat the sample
 *   --minutes N          ends after this time, by default 60; the rest is counted as not tried
 *   --list               lists the mutants and runs nothing
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { nameOf } from "./mutant.ts";
import { codeMutants, sqlMutants } from "./mutants.ts";
import { TARGETS, type Target } from "./targets.ts";
import { tryAll, type Result, type Trial } from "./trials.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const { values: options } = parseArgs({
  options: {
    kind: { type: "string" },
    file: { type: "string" },
    place: { type: "string" },
    operator: { type: "string" },
    line: { type: "string" },
    tests: { type: "string" },
    sample: { type: "string" },
    seed: { type: "string" },
    minutes: { type: "string", default: "60" },
    list: { type: "boolean", default: false },
  },
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** The same numbers for the same seed (mulberry32). */
const randomFrom = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
};

const [firstLine = 0, lastLine = options.line === undefined ? Infinity : firstLine] =
  options.line?.split("-").map(Number) ?? [];

const trialsOf = async (target: Target): Promise<Trial[]> => {
  const tests = options.tests?.split(",") ?? target.tests;
  const source = await readFile(join(ROOT, target.file), "utf8");
  const mutants = target.kind === "sql" ? sqlMutants(target.file, source) : codeMutants(target.file, source);
  return mutants
    .filter(({ place }) => target.places === undefined || target.places.some((name) => place.endsWith(name)))
    .filter(({ place }) => options.place === undefined || place.endsWith(options.place))
    .filter(({ operator }) => options.operator === undefined || operator === options.operator)
    .filter(({ line }) => line >= firstLine && line <= lastLine)
    .map((mutant) => ({ mutant, target: { ...target, tests } }));
};

const seed = Number(options.seed ?? Math.floor(Math.random() * 1e9));
const random = randomFrom(seed);
const targets = TARGETS.filter(
  ({ file, kind }) => (options.kind ?? kind) === kind && file.includes(options.file ?? ""),
);
let trials = (await Promise.all(targets.map(trialsOf))).flat();
if (options.sample !== undefined) {
  const drawn = trials.map((trial) => ({ trial, lot: random() })).sort((a, b) => a.lot - b.lot);
  const kept = new Set(drawn.slice(0, Number(options.sample)).map(({ trial }) => trial));
  trials = trials.filter((trial) => kept.has(trial));
}

say(`${trials.length} mutants${options.sample === undefined ? "" : `, drawn with --seed ${seed}`}`);
if (options.list) {
  for (const { mutant } of trials) say(nameOf(mutant));
}
const report = (results: readonly Result[]): void => {
  const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("`", "'");
  say(
    `\n| where | statement or function | change | from | to | verdict | by |\n|---|---|---|---|---|---|---|`,
  );
  for (const { mutant, verdict, by } of results) {
    const { file, line, place, operator, before, after } = mutant;
    const shown = verdict === "survived" ? "**survived**" : verdict;
    say(
      `| ${file}:${line} | ${place} | ${operator} | \`${cell(before)}\` | \`${cell(after)}\` | ${shown} | ${cell(by)} |`,
    );
  }
  const count = (verdict: Result["verdict"]): number =>
    results.filter((one) => one.verdict === verdict).length;
  say(
    `\n${results.length} of ${trials.length} mutants tried: ${count("killed")} killed, ${count("time-out")} ended by their time limit, ` +
      `${count("no statement")} that PostgreSQL refused, ${count("survived")} survived.`,
  );
};

const results = options.list
  ? []
  : await tryAll(trials, { root: ROOT, endAt: Date.now() + Number(options.minutes) * 60_000, say });
if (!options.list) report(results);
