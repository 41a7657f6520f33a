import { expect, test, vi } from "vitest";
import { EncryptionError } from "../../../src/platform/domain/errors.ts";
import {
  createDispatcher,
  LATE_ANSWER,
  type DispatcherParts,
  type SendResult,
} from "../../../src/engine/outbox/dispatcher.ts";
import type { SentWebhook } from "../../../src/engine/outbox/deliveries.ts";
import { eventually } from "../../helpers/conditions.ts";
import { listeningLogger } from "../../helpers/parts.ts";

/** The dispatcher's own behaviour, with any outbox. delivery.test.ts tests it on a server. */

type Deliveries = DispatcherParts["deliveries"];
const aCourier = (
  deliveries: Pick<Deliveries, "claim"> & Partial<Deliveries>,
  send: () => Promise<SendResult> = async () => ({ kind: "delivered", status: 204 }),
) =>
  createDispatcher({
    deliveries: {
      readWebhook: async () => undefined,
      readPush: async () => undefined,
      delivered: async () => undefined,
      failed: async () => false,
      handBack: async () => undefined,
      ...deliveries,
    },
    send: { webhook: send, push: send },
    own: true,
    faults: { reached: () => undefined },
    logger: listeningLogger().logger,
  });
const held = (id: string) => ({
  id,
  kind: "webhook" as const,
  receiver: "hooks.example.com",
  caller: "user:one",
  attempt: 1,
  failures: 3,
});

test("a closed dispatcher claims nothing more, although more is due all the time", async () => {
  let claims = 0;
  const dispatcher = aCourier({
    async claim() {
      await new Promise((resolve) => setImmediate(resolve));
      claims += 1;
      return { held: [held(`run ${claims}`)], givenUp: [] };
    },
  });
  dispatcher.open();
  await eventually("it claims again and again", () => claims > 3);
  const closing = dispatcher.close();
  const atClose = claims;
  await closing;
  // The claim that was running.
  expect(claims).toBeLessThanOrEqual(atClose + 1);
});

test("a dispatcher claims when it opens and when it is woken, and by itself only after a failure", async () => {
  const claims: string[] = [];
  const faults = [Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" })];
  const dispatcher = aCourier({
    async claim() {
      const fault = faults.shift();
      claims.push(fault === undefined ? "answered" : "failed");
      if (fault !== undefined) throw fault;
      return { held: [], givenUp: [] };
    },
  });
  vi.useFakeTimers();
  dispatcher.open();
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(claims).toEqual(["failed", "answered"]);
  dispatcher.wake();
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(claims).toEqual(["failed", "answered", "answered"]);
  vi.useRealTimers();
  await dispatcher.close();
});

test.each([
  [new EncryptionError("A stored value was changed."), "A stored value was changed."],
  [new TypeError("a secret of ours"), "The server failed to make the request; its log says why."],
])(
  "an impossible request is stored as a failure, and retried as late as others: %s",
  async (fault, reason) => {
    const failures: Parameters<Deliveries["failed"]>[] = [];
    const due = [held("run")];
    const dispatcher = aCourier({
      claim: async () => ({ held: due.splice(0), givenUp: [] }),
      readWebhook: () => Promise.reject(fault),
      async failed(...failure) {
        failures.push(failure);
        return false;
      },
    });
    dispatcher.open();
    await eventually("it has failed", () => failures.length > 0);
    await dispatcher.close();
    expect(failures).toEqual([
      [
        expect.objectContaining({ id: "run", attempt: 1 }),
        expect.objectContaining({ reason: reason, status: null }),
      ],
    ]);
    // After three failures.
    expect(failures[0]?.[1].pauseSeconds).toBeGreaterThanOrEqual(40);
  },
);

test("tries are counted by result", async () => {
  const failed = (status: number | null, reason: string) => ({ kind: "failed", status, reason }) as const;
  const results: SendResult[] = [
    { kind: "delivered", status: 204 },
    failed(410, "The receiver answered 410."),
    failed(null, LATE_ANSWER),
    failed(null, "The receiver refused the connection."),
    { ...failed(null, "Sealed."), isOurs: true },
  ];
  const due = results.map((_, index) => held(`run ${index}`));
  const dispatcher = aCourier(
    {
      claim: async () => ({ held: due.splice(0), givenUp: [] }),
      readWebhook: async () => ({ url: "https://hooks.example.com/" }) as SentWebhook,
    },
    async () => results.pop()!,
  );
  dispatcher.open();
  await eventually("all are tried", () => results.length === 0);
  await dispatcher.close();
  const { webhook, push } = dispatcher.figures();
  expect(webhook).toEqual({ delivered: 1, refused_status: 1, time_out: 1, unreachable: 1, not_made: 1 });
  expect(Object.values(push)).toEqual([0, 0, 0, 0, 0]);
});
