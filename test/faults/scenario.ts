import type { Bench } from "./bench.ts";
import type { TestDatabase } from "./test-database.ts";

export interface Finding {
  figure: string;
  /** Contradictions of the criterion; none if it is met. */
  complaints: string[];
  skipped?: string;
}

export interface ScenarioParts {
  bench: Bench;
  /** The bench's Postgres, for stopping it; only in the long form. */
  database?: TestDatabase;
}

export interface Scenario {
  /** As in docs/reliability.md. */
  number: number;
  title: string;
  criterion: string;
  /** The differences of this run from the criterion's own counts. */
  scaled?: string;
  run(parts: ScenarioParts): Promise<Finding>;
}

/** The keys describe faults; returns those that are true. */
export const complaintsWhere = (checks: Record<string, boolean>): string[] =>
  Object.entries(checks)
    .filter(([, isWrong]) => isWrong)
    .map(([sentence]) => sentence);
