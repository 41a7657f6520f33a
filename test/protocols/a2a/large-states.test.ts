import { expect, test } from "vitest";
import { createResponseBudget } from "../../../src/http/response-budget.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { onServer } from "../../helpers/servers.ts";
import { clientOf, data, eventsOf, saying, sent } from "./clients.ts";

/** Streams of tasks with a large state, where the budget of answers has room for one such state. */

let server: TestServer;
let api: Api;
const responseBudget = createResponseBudget({ bytesAtMost: 4_000_000, waitMs: 200 });
onServer({ responseBudget }, (opened) => ({ server, api } = opened));

test("a client that follows a task with a large state leaves the room for other large answers", async () => {
  const contextId = newId();
  const gate = await clientOf(server, "gate");
  const large = "x".repeat(2_500_000);
  const first = sent(gate, saying([data({ label: large })], { contextId }));
  await eventually("the first run is at its gate", () => isAtGate(large));
  openGate(large);
  await first;
  const message = saying([data({ label: "followed" })], { contextId, returnImmediately: true });
  const { id } = await sent(gate, message);
  await eventually("the second run is at its gate", () => isAtGate("followed"));
  const stream = gate.resubscribeTask({ tenant: "", id });
  expect((await stream.next()).value?.payload).toMatchObject({ $case: "task", value: { id } });
  expect((await api.get(`/threads/${contextId}/state`)).status).toBe(200);
  openGate("followed");
  expect((await eventsOf(stream)).at(-1)).toMatchObject({ $case: "statusUpdate" });
});
