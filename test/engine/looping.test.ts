import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../helpers/api.ts";
import { eventually } from "../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../helpers/database.ts";
import { spawnServer, type ServerProcess } from "../helpers/server-process.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";

/** The most that are taken: no test gets to this many rounds. */
const ROUNDS = 10_000;
/** A responsive server answers within this time, even on a machine busy with other tests. */
const ANSWERS_WITHIN_MS = 30_000;

let database: FreshDatabase;
let process: ServerProcess;
let api: Api;
beforeAll(async () => {
  database = await freshDatabase();
  // A process of its own, because a graph that takes every turn of the loop would block the tests, too.
  process = spawnServer(["--config", ENGINE_GRAPHS, "--port", "0"], {
    DATABASE_URL: database.connectionString,
  });
  api = apiOf({ url: await process.address() });
});
afterAll(async () => {
  await process.kill();
  await database.drop();
});

const answer = async (path: string, body?: object): Promise<Response> =>
  await fetch(`${api.url}${path}`, {
    signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
    ...(body === undefined
      ? {}
      : {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
  });

describe("a graph that loops without waiting", () => {
  test.each(["async", "sync", "exit"])(
    "lets other work run, and can be cancelled (%s)",
    async (durability) => {
      const threadId = await api.aThread();
      const run = await api.aRun(threadId, {
        assistant_id: "looping",
        input: { bulk: 10_000 },
        config: { recursion_limit: ROUNDS },
        durability,
      });
      if (durability !== "exit") {
        await eventually("it goes round", async () => {
          const state = (await (await answer(`/threads/${threadId}/state`)).json()) as {
            values: { rounds?: number };
          };
          return (state.values.rounds ?? 0) > 20;
        });
      }
      for (let poll = 0; poll < 5; poll += 1) expect((await answer("/ok")).status).toBe(200);
      const other = await answer("/runs/wait", { assistant_id: "counter", input: { count: 1 } });
      expect(await other.json()).toMatchObject({ count: 2 });
      const cancelled = await answer(`/threads/${threadId}/runs/${run.run_id}/cancel?wait=1`, {});
      expect(cancelled.status).toBe(204);
      expect(await api.run(threadId, run.run_id)).toMatchObject({ status: "interrupted" });
    },
  );
});
