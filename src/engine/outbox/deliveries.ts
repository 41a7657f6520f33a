import type { Database } from "../../platform/database/database.ts";
import { statement, type Fragment } from "../../platform/database/statement.ts";
import type { DeliveryRow } from "../../platform/database/tables.ts";
import { webhookParts } from "../../platform/domain/webhook-address.ts";
import type { RecordEnds } from "../queue/sql/ended.ts";

/** A webhook, recorded by the end of its run, or a push notification, made by its configuration (pushes.ts). */
export type DeliveryKind = "webhook" | "push";

/** A delivery held by this process. `attempt` is the fencing token: each claim increments it. */
export interface HeldDelivery {
  /** A webhook has the id of its run. */
  id: string;
  kind: DeliveryKind;
  receiver: string;
  /** The name that the run counts for; empty: no name and no limit. */
  caller: string;
  attempt: number;
  failures: number;
}

export interface ClaimOptions {
  limit: number;
  /** Maximum concurrent deliveries of a process: to one receiver, of one caller. */
  places: { receiver: number; caller: number };
  underWay: readonly Pick<HeldDelivery, "receiver" | "caller">[];
  /** Also takes deliveries to this server's own routes. */
  own: boolean;
  leaseSeconds: number;
}

export interface Failure {
  status: number | null;
  reason: string;
  pauseSeconds: number;
  forGood: boolean;
}

export type SentWebhook = Pick<DeliveryRow, (typeof SENT)[number] | "kwargs" | "config" | "context">;

/** A push notification; see `PushConfig`. */
export interface StoredPush {
  delivery_id: string;
  thread_id: string;
  task_run_id: string;
  configuration: string;
}

const { url, receiver } = webhookParts("r.webhook");

/**
 * Bytes of `kwargs`, `config` and `context` that a delivery may include. A request body may have 200 MB, and
 * 16 of these exceed the memory of a process.
 */
const ASKED_BYTES_AT_MOST = 6_000_000;

const IS_DELIVERABLE = `octet_length(r.kwargs::text) + octet_length(r.config::text) + octet_length(r.context::text) <= ${ASKED_BYTES_AT_MOST}`;

/**
 * Includes the payload, because run and thread may be deleted a moment later. `on conflict`: the run has to
 * end even if a row exists against expectation. Index: runs_pkey.
 */
export const recordDeliveries: RecordEnds = (ended, { finalValues, valuesOmitted }) => `record_deliveries as (
  insert into threadloom.deliveries (delivery_id, kind, run_id, thread_id, assistant_id, graph_id, url, receiver, caller,
    run_status, error, metadata, config, context, kwargs, multitask_strategy, run_created_at, run_started_at, run_ended_at,
    final_values, values_omitted)
  select r.run_id, 'webhook', r.run_id, r.thread_id, r.assistant_id, r.graph_id, ${url},
    ${receiver}, coalesce(r.caller, ''),
    e.status, e.error, r.metadata, case when asked.is_deliverable then r.config else '{}' end,
    case when asked.is_deliverable then r.context else '{}' end, case when asked.is_deliverable then r.kwargs end,
    r.multitask_strategy, r.created_at, r.started_at, now(), ${finalValues}, ${valuesOmitted}
  from ${ended} e join threadloom.runs r on r.thread_id = e.thread_id and r.run_id = e.run_id
    cross join lateral (select ${IS_DELIVERABLE} as is_deliverable) as asked
  where r.webhook is not null
  on conflict do nothing)`;

/** Due deliveries read per claim: thousands of one caller may precede all others. */
const CHECKED = 5_000;

/**
 * pending, due → pending, due again when the lease is over. After `give_up_at`, a delivery that was claimed or
 * replayed before → failed: a process died in its last try, or no process ran. Indexes: deliveries_due,
 * deliveries_pkey.
 */
const CLAIM = statement(
  {
    receivers: "text[]",
    callers: "text[]",
    own: "boolean",
    placesOfReceiver: "integer",
    placesOfCaller: "integer",
    limit: "bigint",
    leaseSeconds: "float8",
  },
  (sql) => `with busy_receivers as (
  select name, count(*) as deliveries from unnest(${sql.receivers}) as busy(name) group by name),
busy_callers as (
  select name, count(*) as deliveries from unnest(${sql.callers}) as busy(name) where name <> '' group by name),
due as (
  select d.delivery_id, d.receiver, d.caller, d.due_at from threadloom.deliveries d
  where d.state = 'pending' and d.due_at <= now() and (d.receiver <> '' or ${sql.own})
    and d.receiver <> all(array(select name from busy_receivers where deliveries >= ${sql.placesOfReceiver}))
    and d.caller <> all(array(select name from busy_callers where deliveries >= ${sql.placesOfCaller}))
  order by d.due_at limit ${CHECKED}),
placed as (
  select due.delivery_id, due.caller, due.due_at,
    row_number() over (partition by due.receiver order by due.due_at) + coalesce(r.deliveries, 0) as of_receiver,
    row_number() over (partition by due.caller order by due.due_at) + coalesce(c.deliveries, 0) as of_caller
  from due left join busy_receivers r on r.name = due.receiver left join busy_callers c on c.name = due.caller),
held as (
  select d.delivery_id from threadloom.deliveries d join placed on placed.delivery_id = d.delivery_id
  where placed.of_receiver <= ${sql.placesOfReceiver} and (placed.caller = '' or placed.of_caller <= ${sql.placesOfCaller})
    and d.state = 'pending' and d.due_at <= now()
  order by placed.of_caller, d.due_at limit ${sql.limit} for update of d skip locked)
update threadloom.deliveries d set attempts = d.attempts + 1, last_attempt_at = now(),
  due_at = now() + make_interval(secs => ${sql.leaseSeconds}),
  state = case when d.attempts > 0 and d.give_up_at < now() then 'failed' else 'pending' end,
  settled_at = case when d.attempts > 0 and d.give_up_at < now() then now() end,
  last_error = case when d.attempts > 0 and d.give_up_at < now()
    then coalesce(d.last_error, 'The result of the last try was not stored.') else d.last_error end
from held where d.delivery_id = held.delivery_id
returning d.delivery_id as id, d.kind, d.receiver, d.caller, d.attempts as attempt, d.failures, d.state`,
);

type Attempt = Pick<HeldDelivery, "id" | "attempt">;
const OF_ATTEMPT = { id: "uuid", attempt: "integer" } as const;

const isHeld = (sql: Readonly<Record<keyof typeof OF_ATTEMPT, string>>): string =>
  `delivery_id = ${sql.id} and attempts = ${sql.attempt} and state = 'pending'`;

const SENT = [
  "delivery_id",
  "run_id",
  "thread_id",
  "assistant_id",
  "url",
  "run_status",
  "error",
  "metadata",
  "multitask_strategy",
  "run_created_at",
  "run_started_at",
  "run_ended_at",
  "final_values",
  "values_omitted",
  "last_error",
] as const satisfies readonly (keyof DeliveryRow)[];

/** Index, like those of the next statements: deliveries_pkey. */
const READ_WEBHOOK = statement(
  OF_ATTEMPT,
  (sql) =>
    `select kwargs, config, context, ${SENT.join(", ")} from threadloom.deliveries where ${isHeld(sql)}`,
);

const READ_PUSH = statement(
  OF_ATTEMPT,
  (sql) =>
    `select delivery_id, thread_id, task_run_id, configuration from threadloom.deliveries where ${isHeld(sql)}`,
);

const DELIVERED = statement(
  { ...OF_ATTEMPT, status: "integer" },
  (sql) => `update threadloom.deliveries set state = 'delivered', settled_at = now(),
  last_status = ${sql.status}, last_error = null where ${isHeld(sql)}`,
);

const FAILED = statement(
  { ...OF_ATTEMPT, status: "integer", reason: "text", pauseSeconds: "float8", forGood: "boolean" },
  (sql) => `update threadloom.deliveries set failures = failures + 1,
  last_status = ${sql.status}, last_error = ${sql.reason},
  due_at = now() + make_interval(secs => ${sql.pauseSeconds}),
  state = case when ${sql.forGood} or now() + make_interval(secs => ${sql.pauseSeconds}) > give_up_at then 'failed' else 'pending' end,
  settled_at = case when ${sql.forGood} or now() + make_interval(secs => ${sql.pauseSeconds}) > give_up_at then now() end
where ${isHeld(sql)} returning state`,
);

const HAND_BACK = statement(
  OF_ATTEMPT,
  (sql) => `update threadloom.deliveries set due_at = now() where ${isHeld(sql)}`,
);

/** The column `give_up_at` has the same default. Covers an outage from Friday evening to Monday morning. */
const GIVE_UP_DAYS = 3;

/** Assigns the columns of a delivery that is due from now on. A process that sends it now is fenced off. */
export const DUE_NOW = `state = 'pending', attempts = d.attempts + 1, failures = 0, due_at = now(),
  settled_at = null, last_error = null, last_status = null, give_up_at = now() + interval '${GIVE_UP_DAYS} days'`;

/** Any state → pending. */
const REPLAY = statement(
  { runId: "uuid", visible: "fragment" },
  (sql) => `update threadloom.deliveries d set ${DUE_NOW}
  where d.delivery_id = ${sql.runId} and d.kind = 'webhook' and ${sql.visible} returning d.delivery_id`,
);

/** Index: deliveries_settled. */
const REMOVE_SETTLED = statement(
  { seconds: "float8", limit: "bigint" },
  (sql) => `delete from threadloom.deliveries where delivery_id in (
  select delivery_id from threadloom.deliveries
  where kind = 'webhook' and settled_at < now() - make_interval(secs => ${sql.seconds})
  order by settled_at limit ${sql.limit} for update skip locked)`,
);

export const decryptedPush = <Row extends Pick<StoredPush, "delivery_id" | "configuration">>(
  { encryption }: Pick<Database, "encryption">,
  row: Row,
): Row => ({
  ...row,
  configuration: encryption.decryptedValue("deliveries", "configuration", row.configuration, row),
});

export const createDeliveries = (database: Database) => ({
  async claim(options: ClaimOptions): Promise<{ held: HeldDelivery[]; givenUp: HeldDelivery[] }> {
    const { limit, places, underWay, own, leaseSeconds } = options;
    const taken = await CLAIM.query<HeldDelivery & { state: string }>(database, {
      receivers: underWay.map((each) => each.receiver),
      callers: underWay.map((each) => each.caller),
      ...{ own, limit, leaseSeconds, placesOfReceiver: places.receiver, placesOfCaller: places.caller },
    });
    return {
      held: taken.filter(({ state }) => state === "pending"),
      givenUp: taken.filter(({ state }) => state !== "pending"),
    };
  },

  /** Undefined if this process no longer holds the delivery, like the next. Throws an `EncryptionError`. */
  async readWebhook(attempt: Attempt): Promise<SentWebhook | undefined> {
    const [row] = await READ_WEBHOOK.query<SentWebhook>(database, attempt);
    return row && database.encryption.decrypted("deliveries", row);
  },

  async readPush(attempt: Attempt): Promise<StoredPush | undefined> {
    const [row] = await READ_PUSH.query<StoredPush>(database, attempt);
    return row && decryptedPush(database, row);
  },

  async delivered(attempt: Attempt, status: number): Promise<void> {
    await DELIVERED.query(database, { ...attempt, status });
  },

  /** Returns whether the delivery is given up; undefined if this process no longer holds it. */
  async failed(attempt: Attempt, failure: Failure): Promise<boolean | undefined> {
    const key = { delivery_id: attempt.id };
    const reason = database.encryption.stored("deliveries", "last_error", failure.reason, key);
    const [row] = await FAILED.query<{ state: string }>(database, { ...attempt, ...failure, reason });
    return row && row.state === "failed";
  },

  async handBack(attempt: Attempt): Promise<void> {
    await HAND_BACK.query(database, attempt);
  },

  /** `visible`: a condition on the row `d`. */
  async replay(runId: string, visible: Fragment): Promise<boolean> {
    return (await REPLAY.query(database, { runId, visible })).length > 0;
  },

  async removeSettled(seconds: number, limit: number): Promise<number> {
    const { text, values } = REMOVE_SETTLED.compile({ seconds, limit });
    return (await database.execute(text, values)).rowCount ?? 0;
  },
});

export type Deliveries = ReturnType<typeof createDeliveries>;
