import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { claiming, type ClaimOptions, type HeldDelivery, type OutboxTable } from "./claim.ts";
import { GIVE_UP_DAYS } from "./schedule.ts";

export type Attempt = Pick<HeldDelivery, "id" | "attempt">;
export const OF_ATTEMPT = { id: "uuid", attempt: "integer" } as const;
type OfAttempt = Readonly<Record<keyof typeof OF_ATTEMPT, string>>;

export const heldCondition = ({ key }: OutboxTable, sql: OfAttempt): string =>
  `${key} = ${sql.id} and attempts = ${sql.attempt} and state = 'pending'`;

/** Assigns the columns of a delivery that is due from now on. A process that sends it now is fenced off. */
export const DUE_NOW = `state = 'pending', attempts = d.attempts + 1, failures = 0, due_at = now(),
  settled_at = null, last_error = null, last_status = null, give_up_at = now() + interval '${GIVE_UP_DAYS} days'`;

export interface Failure {
  status: number | null;
  reason: string;
  pauseSeconds: number;
  forGood: boolean;
}

/** The statements of a dispatcher on a table. Index: the primary key. */
export const sendingOf = (outbox: OutboxTable) => {
  const { table } = outbox;
  const claim = claiming(outbox);

  const DELIVERED = statement(
    { ...OF_ATTEMPT, status: "integer" },
    (sql) => `update threadloom.${table} set state = 'delivered', settled_at = now(),
  last_status = ${sql.status}, last_error = null where ${heldCondition(outbox, sql)}`,
  );

  const FAILED = statement(
    { ...OF_ATTEMPT, status: "integer", reason: "text", pauseSeconds: "float8", forGood: "boolean" },
    (sql) => `update threadloom.${table} set failures = failures + 1,
  last_status = ${sql.status}, last_error = ${sql.reason},
  due_at = now() + make_interval(secs => ${sql.pauseSeconds}),
  state = case when ${sql.forGood} or now() + make_interval(secs => ${sql.pauseSeconds}) > give_up_at then 'failed' else 'pending' end,
  settled_at = case when ${sql.forGood} or now() + make_interval(secs => ${sql.pauseSeconds}) > give_up_at then now() end
where ${heldCondition(outbox, sql)} returning state`,
  );

  const HAND_BACK = statement(
    OF_ATTEMPT,
    (sql) => `update threadloom.${table} set due_at = now() where ${heldCondition(outbox, sql)}`,
  );

  /** `encrypted`: the reason of a failure as the table stores it. */
  return (database: Database, encrypted: (reason: string, id: string) => string) => ({
    claim: (options: ClaimOptions) => claim(database, options),

    async delivered(attempt: Attempt, status: number): Promise<void> {
      await DELIVERED.query(database, { ...attempt, status });
    },

    /** Returns whether the delivery is given up; undefined if this process no longer holds it. */
    async failed(attempt: Attempt, failure: Failure): Promise<boolean | undefined> {
      const reason = encrypted(failure.reason, attempt.id);
      const [row] = await FAILED.query<{ state: string }>(database, { ...attempt, ...failure, reason });
      return row && row.state === "failed";
    },

    async handBack(attempt: Attempt): Promise<void> {
      await HAND_BACK.query(database, attempt);
    },
  });
};
