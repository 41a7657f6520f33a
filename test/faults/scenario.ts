import type { Bench } from "./bench.ts";
import type { TestDatabase } from "./test-database.ts";

/** What a scenario found. */
export interface Finding {
  /** The figures, in one line. */
  figure: string;
  /** What contradicts the criterion; none: it holds. */
  complaints: string[];
  /** Why it can't run on this machine. */
  skipped?: string;
}

export interface ScenarioParts {
  bench: Bench;
  /** The Postgres under the bench, to be stopped; only in the long form. */
  database?: TestDatabase;
}

export interface Scenario {
  /** As in docs/reliability.md. */
  number: number;
  title: string;
  criterion: string;
  /** What differs from the criterion's own counts in this run. */
  scaled?: string;
  run(parts: ScenarioParts): Promise<Finding>;
}

/** Complaints are written as what is, where it is not what should be. */
export const complaintsWhere = (checks: Record<string, boolean>): string[] =>
  Object.entries(checks)
    .filter(([, isWrong]) => isWrong)
    .map(([sentence]) => sentence);
