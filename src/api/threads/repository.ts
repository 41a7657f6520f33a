import type { Permission, Visibility } from "../../access/visibility.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import type { ThreadStatus } from "../../platform/database/tables.ts";
import { encryptedParameter, NO_CONDITION, statement } from "../../platform/database/statement.ts";
import { hasRoomForMetadata } from "../../platform/database/merging.ts";
import { threadNotFound } from "../../platform/domain/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { ThreadTtl } from "../../graphs/project/expiry.ts";
import { type LongColumn, openRecords, RECORD_COLUMNS, type ThreadRecordRow } from "./record.ts";

export interface NewThread {
  /** Undefined: a new id. */
  threadId?: string | undefined;
  ttl?: ThreadTtl | undefined;
}

const FIND = statement(
  { threadId: "uuid", visible: "fragment" },
  (sql) =>
    `select ${RECORD_COLUMNS} from threadloom.threads where thread_id = ${sql.threadId} and ${sql.visible}`,
);

interface InsertedThread {
  threadId: string;
  metadata: JsonObject;
  ttl: ThreadTtl | undefined;
}

const INSERTED = {
  threadId: ["uuid", ({ threadId }: InsertedThread) => threadId],
  metadata: encryptedParameter(
    "threads",
    "metadata",
    ({ metadata }: InsertedThread) => metadata,
    ({ threadId }: InsertedThread) => ({ thread_id: threadId }),
  ),
  strategy: ["text", ({ ttl }: InsertedThread) => ttl?.strategy ?? null],
  minutes: ["float8", ({ ttl }: InsertedThread) => ttl?.minutes ?? null],
} as const;

const INSERT = statement(
  INSERTED,
  (sql) => `
  insert into threadloom.threads (thread_id, metadata, ttl_strategy, ttl_minutes, expires_at)
  values (${sql.threadId}, ${sql.metadata}, ${sql.strategy}, ${sql.minutes}, now() + ${sql.minutes} * interval '1 minute')
  on conflict (thread_id) do nothing
  returning ${RECORD_COLUMNS}`,
);

/** Raw SQL, because Kysely would send `metadata` (up to 1 MB) five times. */
const PATCH = statement(
  {
    threadId: "uuid",
    metadata: "jsonb",
    ttlStrategy: "text",
    ttlMinutes: "float8",
    visible: "fragment",
    removable: "fragment",
  },
  (sql) => `
  update threadloom.threads
     set metadata = metadata || ${sql.metadata},
         ttl_strategy = coalesce(${sql.ttlStrategy}, ttl_strategy),
         ttl_minutes = coalesce(${sql.ttlMinutes}, ttl_minutes),
         expires_at = now() + coalesce(${sql.ttlMinutes}, ttl_minutes) * interval '1 minute',
         updated_at = now()
   where thread_id = ${sql.threadId} and ${sql.visible} and ${sql.removable}
     and (${sql.metadata} = '{}' or ${hasRoomForMetadata(`metadata || ${sql.metadata}`)})
  returning ${RECORD_COLUMNS}`,
);

const READ_COPIED = statement(
  { threadId: "uuid", visible: "fragment" },
  (sql) => `select status, metadata::text, config::text, interrupts::text, error::text
  from threadloom.threads where thread_id = ${sql.threadId} and ${sql.visible}`,
);

/** The caller sets the status of a busy thread's copy, because it depends on the graph. */
const INSERT_COPY = statement(
  {
    ...{ threadId: "uuid", copyId: "uuid", status: "text", granted: "jsonb", metadata: "jsonb" },
    ...{ config: "json", interrupts: "json", error: "json" },
  },
  (sql) => `
  insert into threadloom.threads (thread_id, status, metadata, config, interrupts, error, ttl_strategy, ttl_minutes, expires_at,
    state_updated_at)
  select ${sql.copyId}, case when ${sql.status} = 'busy' then 'idle' else ${sql.status} end, ${sql.metadata} || ${sql.granted},
         ${sql.config}, ${sql.interrupts}, ${sql.error},
         ttl_strategy, ttl_minutes, now() + ttl_minutes * interval '1 minute', state_updated_at
    from threadloom.threads where thread_id = ${sql.threadId}
  returning ${RECORD_COLUMNS}`,
);

export interface ThreadStanding {
  graphId: string | null;
  busy: boolean;
  version: string;
}

const STANDING = statement(
  { threadId: "uuid", visible: "fragment" },
  (sql) => `select metadata ->> 'graph_id' as "graphId", unfinished_runs > 0 as busy, version::text as version
  from threadloom.threads where thread_id = ${sql.threadId} and ${sql.visible}`,
);

export interface StateOutcome {
  status: "idle" | "interrupted";
  /** JSON text of `{task_id: [{id, value}]}`. */
  interrupts: string;
}

const RECORD_OUTCOME = statement(
  { threadId: "uuid", status: "text", interrupts: "json", visible: "fragment" },
  (
    sql,
  ) => `update threadloom.threads set status = ${sql.status}, interrupts = ${sql.interrupts}, error = null,
    version = version + 1, updated_at = now(), state_updated_at = now(),
    expires_at = now() + ttl_minutes * interval '1 minute'
  where thread_id = ${sql.threadId} and unfinished_runs = 0 and ${sql.visible}`,
);

export const createThreadRepository = (database: Database) => {
  const open = <Row extends ThreadRecordRow>(rows: Row[]) => openRecords(database, rows);

  const find = async (
    visibility: Visibility<"threads">,
    threadId: string,
  ): Promise<ThreadRecordRow | undefined> => {
    const visible = visibility.on("metadata");
    return open(await FIND.query<ThreadRecordRow>(database, { threadId, visible }))[0];
  };

  return {
    /** Undefined if the id is taken. Concurrent creators meet at the primary key, so no read comes first. */
    async insert(
      permission: Permission<"threads", "create">,
      { threadId, ttl }: NewThread,
    ): Promise<ThreadRecordRow | undefined> {
      const { metadata } = permission.value;
      const thread = { threadId: threadId ?? newId(), metadata, ttl };
      return open(await INSERT.query<ThreadRecordRow>(database, thread))[0];
    },

    find,

    /** Throws `threadNotFound`. */
    async get(visibility: Visibility<"threads">, threadId: string): Promise<ThreadRecordRow> {
      const row = await find(visibility, threadId);
      if (row === undefined) throw threadNotFound(threadId);
      return row;
    },

    /**
     * Undefined if the thread is missing, its metadata would grow too large (platform/database/merging.ts), or
     * `removable` hides it.
     */
    async patch(
      visibility: Permission<"threads", "update">,
      threadId: string,
      ttl: ThreadTtl | undefined,
      removable: Visibility<"threads"> = visibility,
    ): Promise<ThreadRecordRow | undefined> {
      const { metadata } = visibility.value;
      const rows = await PATCH.query<ThreadRecordRow>(database, {
        threadId,
        metadata: database.encryption.stored("threads", "metadata", metadata, { thread_id: threadId }),
        ttlStrategy: ttl?.strategy,
        ttlMinutes: ttl?.minutes,
        visible: visibility.on("metadata"),
        removable: removable === visibility ? NO_CONDITION : removable.on("metadata"),
      });
      return open(rows)[0];
    },

    async insertCopy(
      transaction: Queryable,
      readable: Visibility<"threads">,
      creatable: Permission<"threads", "create">,
      threadId: string,
    ): Promise<(ThreadRecordRow & { was_busy: boolean }) | undefined> {
      const { encryption } = database;
      const copyId = newId();
      const key = { thread_id: copyId };
      const visible = readable.on("metadata");
      const [copied] = await READ_COPIED.query<Record<LongColumn, string | null> & { status: ThreadStatus }>(
        transaction,
        { threadId, visible },
      );
      if (copied === undefined) return undefined;
      // Encryption is bound to the thread's row.
      const own = (column: LongColumn): string | null => {
        const text = copied[column];
        return text && encryption.reencrypted("threads", column, text, key, { thread_id: threadId });
      };
      const rows = await INSERT_COPY.query<ThreadRecordRow>(transaction, {
        ...{ threadId, copyId, status: copied.status },
        granted: encryption.stored("threads", "metadata", creatable.value.metadata, key),
        ...{ metadata: own("metadata"), config: own("config") },
        ...{ interrupts: own("interrupts"), error: own("error") },
      });
      const [row] = open(rows);
      return row && { ...row, was_busy: copied.status === "busy" };
    },

    /** Throws `threadNotFound`. */
    async standing(visibility: Visibility<"threads">, threadId: string): Promise<ThreadStanding> {
      const visible = visibility.on("metadata");
      const [standing] = await STANDING.query<ThreadStanding>(database, { threadId, visible });
      if (standing === undefined) throw threadNotFound(threadId);
      return standing;
    },

    /** An unfinished run writes its own outcome, so its thread stays unchanged. */
    async recordOutcome(
      visibility: Visibility<"threads">,
      threadId: string,
      { status, interrupts }: StateOutcome,
    ): Promise<void> {
      const key = { thread_id: threadId };
      await RECORD_OUTCOME.query(database, {
        threadId,
        status,
        interrupts: database.encryption.stored("threads", "interrupts", interrupts, key),
        visible: visibility.on("metadata"),
      });
    },
  };
};

export type ThreadRepository = ReturnType<typeof createThreadRepository>;
