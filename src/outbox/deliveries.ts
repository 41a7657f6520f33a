import type { Database } from "../database/database.ts";
import type { WebhookDeliveryRow } from "../database/tables.ts";
import { openFinalValues } from "../queue/sql/final-values.ts";
import { GIVE_UP_DAYS } from "./schedule.ts";

/** A delivery in the hands of this process. `attempt` is the fence: whoever else takes it makes it grow. */
export interface HeldDelivery {
  runId: string;
  receiver: string;
  attempt: number;
}

export interface ClaimOptions {
  limit: number;
  /** Deliveries to one receiver that a process has under way at most. */
  perReceiver: number;
  /** Receiver -> deliveries to it that are under way here. */
  underWay: ReadonlyMap<string, number>;
  /** Takes what goes to this server's own routes, too. */
  own: boolean;
  leaseSeconds: number;
}

/** How many due deliveries are looked at for one claim: those of a receiver that hangs stand in front of others. */
const LOOKED_AT = 200;

/**
 * pending, due → pending, due again when the lease is over: the due time is the lease. Those of receivers that have no
 * room left here are passed over in the index, whose order is that of the due times. Index: webhook_deliveries_due.
 */
const CLAIM = `with busy as (select * from unnest($1::text[], $2::int[]) as busy(receiver, deliveries)),
first as (
  select d.run_id, d.receiver, d.due_at from threadloom.webhook_deliveries d
  where d.state = 'pending' and d.due_at <= now() and (d.receiver <> '' or $3)
    and d.receiver <> all(array(select receiver from busy where deliveries >= $4))
  order by d.due_at limit ${LOOKED_AT}),
placed as (
  select first.run_id, first.due_at,
    row_number() over (partition by first.receiver order by first.due_at) + coalesce(busy.deliveries, 0) as place
  from first left join busy on busy.receiver = first.receiver),
held as (
  select d.run_id from threadloom.webhook_deliveries d join placed on placed.run_id = d.run_id
  where placed.place <= $4 and d.state = 'pending' and d.due_at <= now()
  order by d.due_at limit $5 for update of d skip locked)
update threadloom.webhook_deliveries d set attempts = d.attempts + 1, last_attempt_at = now(),
  due_at = now() + make_interval(secs => $6)
from held where d.run_id = held.run_id
returning d.run_id as "runId", d.receiver, d.attempts as attempt`;

const OF_ATTEMPT = "run_id = $1 and attempts = $2 and state = 'pending'";

const DELIVERED = `update threadloom.webhook_deliveries set state = 'delivered', settled_at = now(), last_status = $3,
  last_error = null where ${OF_ATTEMPT}`;

/** `$6`: the receiver wants no more of it. */
const FAILED = `update threadloom.webhook_deliveries set failures = failures + 1, last_status = $3, last_error = $4,
  due_at = now() + make_interval(secs => $5),
  state = case when $6 or now() + make_interval(secs => $5) > give_up_at then 'failed' else 'pending' end,
  settled_at = case when $6 or now() + make_interval(secs => $5) > give_up_at then now() end
where ${OF_ATTEMPT} returning state`;

const HAND_BACK = `update threadloom.webhook_deliveries set due_at = now() where ${OF_ATTEMPT}`;

/** Index: webhook_deliveries_settled. */
const REMOVE_SETTLED = `delete from threadloom.webhook_deliveries where run_id in (
  select run_id from threadloom.webhook_deliveries where settled_at < now() - make_interval(secs => $1)
  order by settled_at limit $2 for update skip locked)`;

/** Any state → pending, due now, as if it had never been tried; `attempts` goes on, so whoever sends it now is fenced off. */
const REPLAY = `state = 'pending', attempts = attempts + 1, failures = 0, due_at = now(), settled_at = null,
  last_error = null, last_status = null, give_up_at = now() + interval '${GIVE_UP_DAYS} days'`;

/** The table of deliveries, for those who send them: each is held by one process at a time, fenced by its number of attempts. */
export const createDeliveries = (database: Database) => ({
  async claim(options: ClaimOptions): Promise<HeldDelivery[]> {
    const { limit, perReceiver, underWay, own, leaseSeconds } = options;
    return await database.query<HeldDelivery>(CLAIM, [
      [...underWay.keys()],
      [...underWay.values()],
      own,
      perReceiver,
      limit,
      leaseSeconds,
    ]);
  },

  /** Undefined if it is no longer held. */
  async read({ runId, attempt }: HeldDelivery): Promise<WebhookDeliveryRow | undefined> {
    const text = `select * from threadloom.webhook_deliveries where ${OF_ATTEMPT}`;
    const [row] = await database.query<WebhookDeliveryRow>(text, [runId, attempt]);
    if (row === undefined || database.cipher === undefined) return row;
    return { ...row, final_values: openFinalValues(database.cipher, row.final_values, row.thread_id) };
  },

  async delivered({ runId, attempt }: HeldDelivery, status: number): Promise<void> {
    await database.query(DELIVERED, [runId, attempt, status]);
  },

  /** Answers whether it is given up; undefined if it is no longer held. `forGood`: the receiver wants no more of it. */
  async failed(
    { runId, attempt }: HeldDelivery,
    failure: { status: number | null; reason: string; pauseSeconds: number; forGood: boolean },
  ): Promise<boolean | undefined> {
    const { status, reason, pauseSeconds, forGood } = failure;
    const values = [runId, attempt, status, reason, pauseSeconds, forGood];
    const [row] = await database.query<{ state: string }>(FAILED, values);
    return row && row.state === "failed";
  },

  /** Nothing was sent, or nobody knows: another process does it. */
  async handBack({ runId, attempt }: HeldDelivery): Promise<void> {
    await database.query(HAND_BACK, [runId, attempt]);
  },

  /** Answers how many were removed. */
  async removeSettled(seconds: number, limit: number): Promise<number> {
    return (await database.execute(REMOVE_SETTLED, [seconds, limit])).rowCount ?? 0;
  },

  /** `where`: a condition on the row `d` of the table. Answers the ids of those that will be sent again. */
  async replay(where: string, values: unknown[]): Promise<string[]> {
    const text = `update threadloom.webhook_deliveries d set ${REPLAY} where ${where} returning d.run_id`;
    return (await database.query<{ run_id: string }>(text, values)).map((row) => row.run_id);
  },
});

export type Deliveries = ReturnType<typeof createDeliveries>;
