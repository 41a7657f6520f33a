import { randomBytes } from "node:crypto";
import type { Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";

/** A table with the columns of a delivery, and its key. */
export interface OutboxTable {
  table: "webhook_deliveries" | "push_notifications";
  key: "run_id" | "push_id";
}

/** A delivery held by this process. `attempt` is the fencing token: each claim increments it. */
export interface HeldDelivery {
  /** The value of `OutboxTable.key`. */
  id: string;
  receiver: string;
  /** The name that the run counts for; empty: no name and no limit. */
  caller: string;
  attempt: number;
  failures: number;
}

export interface ClaimOptions {
  limit: number;
  /** Maximum concurrent deliveries of a process: to one receiver, of one user, of one API key. */
  places: { receiver: number; user: number; key: number };
  underWay: readonly Pick<HeldDelivery, "receiver" | "caller">[];
  /** Also takes deliveries to this server's own routes. */
  own: boolean;
  leaseSeconds: number;
}

/** Due deliveries read per claim: many of one hanging receiver may precede others. */
const CHECKED = 200;
const CALLERS_CHECKED = 50;
const CHECKED_PER_CALLER = 4;

const PARAMETERS = {
  receivers: "text[]",
  callers: "text[]",
  own: "boolean",
  placesOfReceiver: "integer",
  placesOfUser: "integer",
  placesOfKey: "integer",
  limit: "bigint",
  leaseSeconds: "float8",
  fromCaller: "text",
} as const;
type Sql = Readonly<Record<keyof typeof PARAMETERS, string>>;

const due = (sql: Sql): string => `d.due_at <= now() and (d.receiver <> '' or ${sql.own})
    and d.receiver <> all(array(select receiver from busy where deliveries >= ${sql.placesOfReceiver}))`;
const placesOf = (caller: string, sql: Sql): string =>
  `case when ${caller} like 'user:%' then ${sql.placesOfUser} when ${caller} = '' then 2147483647 else ${sql.placesOfKey} end`;

/**
 * pending, due → pending, due again when the lease is over. After `give_up_at`, a delivery that was claimed or
 * replayed before → failed: a process died in its last try, or no process ran. The claim also reads the first deliveries of some callers, from a
 * random one on (`fromCaller`), because thousands of one caller may precede all others. Indexes of both tables:
 * …_due, …_due_of_caller, …_pkey.
 */
const claimText = ({ table, key }: OutboxTable, sql: Sql): string => {
  const pending = `threadloom.${table} d where d.state = 'pending'`;
  const nextCaller = (condition: string): string =>
    `(select d.caller from ${pending}${condition} order by d.caller limit 1)`;
  return `with recursive busy as (
  select receiver, count(*) as deliveries from unnest(${sql.receivers}) as busy(receiver) group by receiver),
busy_callers as (
  select caller, count(*) as deliveries from unnest(${sql.callers}) as busy(caller) group by caller),
full_callers as (
  select caller from busy_callers where deliveries >= ${placesOf("caller", sql)}),
callers(caller, beginning, place) as (
  select caller, caller, 1
  from (select coalesce(${nextCaller(` and d.caller > ${sql.fromCaller}`)}, ${nextCaller("")}) as caller) as one
  where caller is not null
  union all
  select next.caller, callers.beginning, callers.place + 1 from callers cross join lateral (
    select coalesce(${nextCaller(" and d.caller > callers.caller")}, ${nextCaller("")}) as caller) as next
  where callers.place < ${CALLERS_CHECKED} and next.caller <> callers.beginning),
due as (
  (select d.${key}, d.receiver, d.caller, d.due_at from ${pending} and ${due(sql)}
    and d.caller <> all(array(select caller from full_callers))
  order by d.due_at limit ${CHECKED})
  union
  select d.* from callers cross join lateral (
    select d.${key}, d.receiver, d.caller, d.due_at from ${pending} and d.caller = callers.caller and ${due(sql)}
    order by d.due_at limit ${CHECKED_PER_CALLER}) as d
  where callers.caller not in (select caller from full_callers)),
placed as (
  select due.${key}, due.caller, due.due_at,
    row_number() over (partition by due.receiver order by due.due_at) + coalesce(busy.deliveries, 0) as of_receiver,
    row_number() over (partition by due.caller order by due.due_at) + coalesce(busy_callers.deliveries, 0) as of_caller
  from due left join busy on busy.receiver = due.receiver left join busy_callers on busy_callers.caller = due.caller),
held as (
  select d.${key} from threadloom.${table} d join placed on placed.${key} = d.${key}
  where placed.of_receiver <= ${sql.placesOfReceiver} and placed.of_caller <= ${placesOf("placed.caller", sql)}
    and d.state = 'pending' and d.due_at <= now()
  order by placed.of_caller, d.due_at limit ${sql.limit} for update of d skip locked)
update threadloom.${table} d set attempts = d.attempts + 1, last_attempt_at = now(),
  due_at = now() + make_interval(secs => ${sql.leaseSeconds}),
  state = case when d.attempts > 0 and d.give_up_at < now() then 'failed' else 'pending' end,
  settled_at = case when d.attempts > 0 and d.give_up_at < now() then now() end,
  last_error = case when d.attempts > 0 and d.give_up_at < now()
    then coalesce(d.last_error, 'The result of the last try was not stored.') else d.last_error end
from held where d.${key} = held.${key}
returning d.${key} as id, d.receiver, d.caller, d.attempts as attempt, d.failures, d.state`;
};

export const claiming = (outbox: OutboxTable) => {
  const claim = statement(PARAMETERS, (sql) => claimText(outbox, sql));

  return async (
    queryable: Queryable,
    options: ClaimOptions,
  ): Promise<{ held: HeldDelivery[]; givenUp: string[] }> => {
    const { limit, places, underWay, own, leaseSeconds } = options;
    const taken = await claim.query<HeldDelivery & { state: string }>(queryable, {
      receivers: underWay.map(({ receiver }) => receiver),
      callers: underWay.map(({ caller }) => caller),
      own,
      placesOfReceiver: places.receiver,
      placesOfUser: places.user,
      placesOfKey: places.key,
      limit,
      leaseSeconds,
      fromCaller: `user:${randomBytes(4).toString("hex")}`,
    });
    return {
      held: taken.flatMap(({ state, ...held }) => (state === "pending" ? [held] : [])),
      givenUp: taken.flatMap(({ state, id }) => (state === "pending" ? [] : [id])),
    };
  };
};
