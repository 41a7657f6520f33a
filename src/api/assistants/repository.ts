import type { Permission, Visibility } from "../../access/visibility.ts";
import { queriesOver } from "../../platform/database/queries.ts";
import { whereVisible } from "../../access/where-visible.ts";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { READ_BY_ANY_PLAN } from "../../platform/database/session-settings.ts";
import { compileOnce } from "../../platform/database/compile-once.ts";
import type { AssistantRow } from "../../platform/database/tables.ts";
import { ASSISTANT_PARAMETERS, COLUMNS, contains, SNAPSHOT } from "./columns.ts";

export interface NewAssistant {
  assistantId: string;
  graphId: string;
}

const DEFAULT_NAME = "Untitled";

/** Raw SQL for the CTE, which also creates the first version. */
const CREATE = statement(
  ASSISTANT_PARAMETERS,
  (sql) => `with assistant as (
  insert into threadloom.assistants (assistant_id, graph_id, name, description, config, context, metadata, version)
  values (${sql.assistantId}, ${sql.graphId}, ${sql.name}, ${sql.description}, ${sql.config}, ${sql.context},
    ${sql.metadata}, 1)
  on conflict (assistant_id) do nothing
  returning ${COLUMNS.join(", ")}),
first_version as (
  insert into threadloom.assistant_versions (${SNAPSHOT.join(", ")}) select ${SNAPSHOT.join(", ")} from assistant)
select ${COLUMNS.join(", ")} from assistant`,
);

export const createAssistantRepository = (database: Database) => {
  const kysely = queriesOver(database);
  const { encryption } = database;
  const findOne = compileOnce(
    { assistantId: ({ assistantId }: { assistantId: string }) => assistantId },
    ({ assistantId }, visibility: Visibility<"assistants">) =>
      kysely
        .selectFrom("assistants")
        .select(COLUMNS)
        .where("assistant_id", "=", assistantId)
        .where(whereVisible(visibility, "metadata")),
  );

  return {
    /** Undefined if the id is taken. */
    async create(
      { value: granted }: Permission<"assistants", "create">,
      assistant: NewAssistant,
    ): Promise<AssistantRow | undefined> {
      const [row] = await CREATE.query<AssistantRow>(database, {
        ...assistant,
        name: granted.name ?? DEFAULT_NAME,
        description: granted.description,
        config: granted.config ?? {},
        context: granted.context ?? {},
        metadata: granted.metadata,
      });
      return row && encryption.decrypted("assistants", row);
    },

    async find(visibility: Visibility<"assistants">, assistantId: string): Promise<AssistantRow | undefined> {
      const [row] = await findOne(database, visibility, { assistantId });
      return row && encryption.decrypted("assistants", row);
    },

    /** Also deletes all versions. */
    async remove(visibility: Visibility<"assistants">, assistantId: string): Promise<boolean> {
      const { numDeletedRows } = await kysely
        .deleteFrom("assistants")
        .where("assistant_id", "=", assistantId)
        .where(whereVisible(visibility, "metadata"))
        .executeTakeFirstOrThrow();
      return numDeletedRows > 0n;
    },

    /**
     * A page begins after an id instead of an offset, because the caller may have deleted found threads. Index:
     * threads_by_metadata.
     */
    async threadsOf(
      visibility: Visibility<"threads">,
      assistantId: string,
      after: string | undefined,
      limit: number,
    ): Promise<string[]> {
      const rows = await database.transaction(
        (transaction) =>
          queriesOver(transaction)
            .selectFrom("threads")
            .select("thread_id")
            .where(contains({ assistant_id: assistantId }))
            .$if(after !== undefined, (query) => query.where("thread_id", ">", after ?? ""))
            .where(whereVisible(visibility, "metadata"))
            .orderBy("thread_id")
            .limit(limit)
            .execute(),
        READ_BY_ANY_PLAN,
      );
      // Each part of a distributed database answers with a page.
      return rows
        .map((row) => row.thread_id)
        .sort()
        .slice(0, limit);
    },
  };
};

export type AssistantRepository = ReturnType<typeof createAssistantRepository>;
