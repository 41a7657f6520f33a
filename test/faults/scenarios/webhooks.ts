import { createHmac } from "node:crypto";
import { eventually } from "../../helpers/conditions.ts";
import { endLeases, PATIENT_LEASES_ENVIRONMENT } from "../../helpers/leases.ts";
import { startReceiver, type Received } from "../../protocols/webhooks/receiver.ts";
import { FAULTY_SERVER, type Bench } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

const SECRET = "a secret of the fault tests";
const ENVIRONMENT = {
  ...PATIENT_LEASES_ENVIRONMENT,
  WEBHOOK_SECRETS: SECRET,
  LANGGRAPH_WEBHOOKS: JSON.stringify({ url: { disable_loopback: false } }),
};
/** The points at which a process dies that executes a run and delivers its webhook. */
const POINTS = ["before-finish", "after-finish", "before-sending", "after-sending"];

const isSigned = ({ headers, body }: Received): boolean => {
  const signed = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`;
  return (
    headers["webhook-signature"] === `v1,${createHmac("sha256", SECRET).update(signed).digest("base64")}`
  );
};
const idOf = ({ headers }: Received): string => String(headers["webhook-id"]);
const sentAt = ({ headers }: Received): number => Number(headers["webhook-timestamp"]);

/** Moves the clock of all deliveries forward. */
const pass = async ({ query }: Bench, minutes: number): Promise<void> => {
  await query(
    `update threadloom.deliveries set due_at = due_at - $1 * interval '1 minute',
       give_up_at = give_up_at - $1 * interval '1 minute' where state = 'pending'`,
    [minutes],
  );
};

/** 24: a receiver that is down for an hour by a moved clock, and a process that dies at each named point. */
export const killedSenders = ({ runs }: { runs: number }): Scenario => ({
  number: 24,
  title: `webhooks: the receiver down for an hour (simulated clock), and kill -9 of a server ${POINTS.join(", ")}`,
  criterion:
    "each end is sent, signed, with the run's id, its tries in the order of their times; none that did not happen; more than once only where a process died",
  async run({ bench }) {
    const receiver = await startReceiver((_, response) => response.writeHead(503).end());
    // A process that continues others' runs may die before it answers; then the runs are either stored or not.
    const create = async (url: string): Promise<void> => {
      const bodies = Array.from({ length: runs }, () => ({
        assistant_id: "two-step",
        input: { messages: [] },
        on_completion: "keep",
        webhook: `${receiver.url}/hook`,
      }));
      await fetch(`${url}/runs/batch`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(bodies),
      }).catch(() => undefined);
    };
    const pending = async (): Promise<number> =>
      (
        await bench.query<{ count: number }>(
          "select count(*)::int as count from threadloom.deliveries where state <> 'delivered'",
        )
      )[0]?.count ?? -1;
    const failures = async (): Promise<number> =>
      (
        await bench.query<{ count: number }>(
          "select coalesce(sum(failures), 0)::int as count from threadloom.deliveries",
        )
      )[0]?.count ?? -1;
    try {
      for (const point of POINTS) {
        const victim = await bench.start({
          entry: FAULTY_SERVER,
          environment: { ...ENVIRONMENT, FAULT_POINT: point, FAULT_ARRIVAL: "2" },
        });
        await create(victim.url);
        await victim.process.exit();
        await endLeases(bench);
      }
      const survivor = await bench.start({ environment: ENVIRONMENT });
      const lost = await bench.untilAllEnded();
      const rows = await bench.query<{ run_id: string }>("select run_id from threadloom.runs");
      const expected = rows.map((row) => row.run_id);
      // Deliveries of dead processes are due again after their lease, and the receiver is still down.
      for (let minutes = 0; minutes < 60; minutes += 20) {
        const before = await failures();
        await pass(bench, 20);
        // Waits until the next try is stored, because the clock must not move before that.
        await eventually("all are tried again", async () => (await failures()) >= before + expected.length);
      }
      const refused = receiver.received.length;
      receiver.answer(undefined);
      await pass(bench, 240);
      await eventually("all are delivered", async () => (await pending()) === 0);
      survivor.signal("SIGTERM");
      await survivor.process.exit();
      const delivered = receiver.received.slice(refused);
      const missing = expected.filter((id) => !delivered.some((received) => idOf(received) === id));
      const unsigned = receiver.received.filter((received) => !isSigned(received)).length;
      const strangers = receiver.received.filter((received) => !expected.includes(idOf(received))).length;
      const late = expected.filter((id) => {
        const times = receiver.received.filter((one) => idOf(one) === id).map(sentAt);
        return times.some((time, index) => time < (times[index - 1] ?? 0));
      }).length;
      return {
        figure: `${expected.length} runs; refused ${refused} times in the hour; then received ${delivered.length}: missing ${missing.length}, wrongly signed ${unsigned}, out of order ${late}, of no run ${strangers}; lost runs ${lost}`,
        complaints: complaintsWhere({
          "no run was created": expected.length === 0,
          "a webhook was not sent": missing.length > 0,
          "a signature was wrong": unsigned > 0,
          "a try was overtaken by a later one of its run": late > 0,
          "a webhook was sent without an end": strangers > 0,
          "a webhook was sent twice although no process died": delivered.length > expected.length,
          "a run was lost": lost > 0,
        }),
      };
    } finally {
      await receiver.close();
    }
  },
});
