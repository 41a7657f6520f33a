import { join } from "node:path";
import pg from "pg";
import { startTestDatabase } from "../faults/test-database.ts";
import { removeLeftovers, temporaryFolder } from "../helpers/temporary-folder.ts";
import { nameOf, type Mutant } from "./mutant.ts";
import type { Target } from "./targets.ts";
import { copyTree } from "./tree-copy.ts";

/** A mutant's tests may take this much longer than without a mutant; then they are ended. */
const PATIENCE = 2;
const PATIENCE_LEAST_MS = 60_000;
const BASELINE_LIMIT_MS = 15 * 60_000;
/** PostgreSQL's log message for a broken statement. */
const NO_STATEMENT =
  /ERROR: {2}(?:syntax error|could not determine|operator does not exist|column .* ambiguous|invalid reference)[^\n]*/;

export interface Trial {
  mutant: Mutant;
  target: Target;
}

export interface Result {
  mutant: Mutant;
  verdict: "killed" | "survived" | "time-out" | "no statement";
  by: string;
}

/**
 * Tries mutants one after the other on a copy of `root` and a PostgreSQL of their own, until `endAt` (milliseconds since the epoch), and
 * then cleans up. Throws if the tests fail without a mutant.
 */
export const tryAll = async (
  trials: readonly Trial[],
  { root, endAt, say }: { root: string; endAt: number; say: (text: string) => void },
): Promise<Result[]> => {
  await removeLeftovers();
  const folder = await temporaryFolder();
  const database = await startTestDatabase();
  const copy = await copyTree(root, join(folder.path, "tree"), await database.create("mutation"));
  const close = async (): Promise<void> => {
    copy.stop();
    await database.close();
    await folder.remove();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void close().finally(() => process.exit(130)));

  /** Databases of tests that were ended halfway. */
  const dropLeftDatabases = async (): Promise<void> => {
    const client = new pg.Client({ connectionString: database.url("mutation") });
    client.on("error", () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query<{ datname: string }>(
        "select datname from pg_database where datname ~ '^threadloom_(test|template)_'",
      );
      for (const { datname } of rows)
        await client.query(`drop database if exists ${pg.escapeIdentifier(datname)} with (force)`);
    } catch (error) {
      say(`  left databases could not be dropped: ${String(error)}`);
    } finally {
      await client.end().catch(() => undefined);
    }
  };

  const results: Result[] = [];
  const baselines = new Map<readonly string[], number>();
  /** The tests that last noticed a mutant, by file and statement: they are likely to notice the next one. */
  const noticed = new Map<string, string[]>();

  const isKnown = ({ file, place }: Mutant, test: string): boolean =>
    noticed.get(file + place)?.includes(test) === true;
  const remember = ({ file, place }: Mutant, test: string): void => {
    for (const key of [file + place, file])
      noticed.set(key, [...new Set([test, ...(noticed.get(key) ?? [])])]);
  };

  const orderFor = ({ mutant, target }: Trial): string[] => {
    const likely = [...(noticed.get(mutant.file + mutant.place) ?? []), ...(noticed.get(mutant.file) ?? [])];
    return [...new Set([...likely, ...target.tests])];
  };

  /** The duration of the tests without a mutant; throws if they fail. */
  const baselineOf = async ({ tests, file }: Target): Promise<number> => {
    const known = baselines.get(tests);
    if (known !== undefined) return known;
    const startedAt = Date.now();
    const run = await copy.test(tests, BASELINE_LIMIT_MS);
    if (run.verdict !== "passed")
      throw new Error(`Without a mutant, too, the tests of ${file} fail: ${run.failed}: ${run.reason}`);
    const took = Date.now() - startedAt;
    baselines.set(tests, took);
    const each = [...run.tookMs].map(([test, ms]) => `${test} ${(ms / 1000).toFixed(1)}`).join(", ");
    say(`the tests of ${file} take ${Math.round(took / 1000)} s without a mutant: ${each}`);
    return took;
  };

  const attempt = async (trial: Trial): Promise<Result> => {
    const { mutant } = trial;
    const limitMs = Math.max(PATIENCE_LEAST_MS, PATIENCE * (await baselineOf(trial.target)));
    const logged = await database.logSize();
    const result = await copy.withMutant(mutant, async (): Promise<Result> => {
      let tests = orderFor(trial);
      for (;;) {
        const run = await copy.test(tests, limitMs);
        if (run.verdict === "passed") return { mutant, verdict: "survived", by: "" };
        await dropLeftDatabases();
        if (run.verdict === "time-out") return { mutant, verdict: "time-out", by: run.failed };
        const test = tests.find((name) => run.failed.startsWith(`${name}: `));
        if (test === undefined || isKnown(mutant, test)) return { mutant, verdict: "killed", by: run.failed };
        // A busy machine makes tests fail, too, so a test that notices for the first time has to notice twice.
        if ((await copy.test([test], limitMs)).verdict !== "passed") {
          remember(mutant, test);
          return { mutant, verdict: "killed", by: run.failed };
        }
        say(`  failed once, and passed then, so it doesn't count: ${run.failed}`);
        tests = tests.slice(tests.indexOf(test) + 1);
        if (tests.length === 0) return { mutant, verdict: "survived", by: "" };
      }
    });
    const complaint = NO_STATEMENT.exec(await database.logFrom(logged))?.[0];
    return result.verdict === "survived" || complaint === undefined
      ? result
      : { mutant, verdict: "no statement", by: complaint };
  };

  let tried = 0;
  try {
    for (const trial of trials) {
      if (Date.now() > endAt) break;
      const startedAt = Date.now();
      const result = await attempt(trial);
      results.push(result);
      tried += 1;
      const took = ((Date.now() - startedAt) / 1000).toFixed(0);
      say(
        `${tried}/${trials.length} ${result.verdict} (${took} s) ${nameOf(trial.mutant)}${result.by && ` | ${result.by}`}`,
      );
    }
  } finally {
    await close();
  }
  return results;
};
