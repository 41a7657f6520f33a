import { sql } from "kysely";
import { type Visibility, whereVisible } from "../../../access/visibility.ts";
import { queriesOver } from "../../../platform/database/queries.ts";
import type { Records } from "../../../platform/database/database.ts";
import { compileOnce } from "../../../platform/database/compile-once.ts";
import { threadBusyForUpdate, threadNotFound } from "../../../platform/domain/errors.ts";

export interface ThreadStanding {
  graphId: string | null;
  busy: boolean;
  version: string;
}

export interface StateOutcome {
  status: "idle" | "interrupted";
  /** JSON text of `{task_id: [{id, value}]}`. */
  interrupts: string;
}

export const createStateRepository = (database: Records) => {
  const kysely = queriesOver(database);
  const readStanding = compileOnce(
    { threadId: ({ threadId }: { threadId: string }) => threadId },
    ({ threadId }, visibility: Visibility<"threads">) =>
      kysely
        .selectFrom("threads")
        .select([
          sql<string | null>`metadata ->> 'graph_id'`.as("graphId"),
          sql<boolean>`unfinished_runs > 0`.as("busy"),
          sql<string>`version::text`.as("version"),
        ])
        .where("thread_id", "=", threadId)
        .where(whereVisible(visibility, "metadata")),
  );

  return {
    /** Throws `threadNotFound`. */
    async standing(visibility: Visibility<"threads">, threadId: string): Promise<ThreadStanding> {
      const [standing] = await readStanding(database, visibility, { threadId });
      if (standing === undefined) throw threadNotFound(threadId);
      return standing;
    },

    /** An unfinished run writes its own outcome, so its thread stays unchanged. */
    async recordOutcome(
      visibility: Visibility<"threads">,
      threadId: string,
      { status, interrupts }: StateOutcome,
    ): Promise<void> {
      await kysely
        .updateTable("threads")
        .set({
          status,
          interrupts: database.encryption.stored("threads", "interrupts", interrupts, {
            thread_id: threadId,
          }),
          error: null,
          version: sql<string>`version + 1`,
          updated_at: sql<Date>`now()`,
          state_updated_at: sql<Date>`now()`,
          expires_at: sql<Date | null>`now() + ttl_minutes * interval '1 minute'`,
        })
        .where("thread_id", "=", threadId)
        .where("unfinished_runs", "=", 0)
        .where(whereVisible(visibility, "metadata"))
        .execute();
    },

    /** Only refuses early: the saver's `put` decides. */
    assertIdle(threadId: string, standing: ThreadStanding): void {
      if (standing.busy) throw threadBusyForUpdate(threadId);
    },
  };
};

export type StateRepository = ReturnType<typeof createStateRepository>;
