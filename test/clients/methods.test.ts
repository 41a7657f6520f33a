import type * as Sdk from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { feature } from "../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { columnOf, LINES, load } from "./lines.ts";
import { ASSISTANT_CALLS } from "./methods/assistants.ts";
import type { Calls } from "./methods/calls.ts";
import { CRON_CALLS } from "./methods/crons.ts";
import { RUN_CALLS } from "./methods/runs.ts";
import { STORE_CALLS } from "./methods/store.ts";
import { THREAD_CALLS } from "./methods/threads.ts";

/** Every public method of every line of the SDK, called once. */
const CALLS: Calls = { ...ASSISTANT_CALLS, ...THREAD_CALLS, ...RUN_CALLS, ...CRON_CALLS, ...STORE_CALLS };

/** Methods that this server does not implement yet. Their calls are refused; remove a method here when its route exists. */
const NOT_YET: Record<string, string> = {};

const PARTS = ["assistants", "threads", "runs", "crons", "store"] as const;
const methodsOf = (client: Sdk.Client): string[] =>
  PARTS.flatMap((part) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(client[part]))
      .filter((name) => name !== "constructor")
      .map((name) => `${part}.${name}`),
  );

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ jobsPerWorker: 30 });
});
afterAll(() => server.close());

for (const line of LINES) {
  const column = columnOf(line);
  const { Client } = await load(line);
  const aClient = () => new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
  const methods = methodsOf(new Client({ apiUrl: "http://127.0.0.1:1" }));

  test(`${column} has no method without a call here`, () => {
    expect(methods.filter((method) => !(method in CALLS))).toEqual([]);
  });

  for (const [method, call] of Object.entries(CALLS).filter(([method]) => methods.includes(method))) {
    const notYet = NOT_YET[method];
    feature({ table: "Methods of the JavaScript SDK", row: `\`${method}\``, column, notYet }, async () => {
      if (notYet === undefined) await call(aClient());
      else await expect(call(aClient())).rejects.toThrow(/404/);
    });
  }
}
