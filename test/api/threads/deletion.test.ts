import pg from "pg";
import { describe, expect, test } from "vitest";
import { RENEW } from "../../../src/engine/queue/sql/renew.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

let server: TestServer;
let api: Api;
onServer({ role: "api" }, (opened) => ({ server, api } = opened));

describe("deleting several threads with running runs", () => {
  test("does not deadlock with the renewal of their leases, whatever the order of their ids", async () => {
    const assistant = await api.post<{ assistant_id: string }>("/assistants", { graph_id: "counter" });
    const { assistant_id } = assistant.body;
    const fields = { metadata: { assistant_id } };
    const ids = (await Promise.all([api.aThread(fields), api.aThread(fields)])).sort();
    const [first, second] = ids as [string, string];
    // The second thread's run comes first in the order of run ids.
    const runs = [
      ["00000000-0000-4000-8000-00000000000b", first],
      ["00000000-0000-4000-8000-00000000000a", second],
    ] as const;
    for (const [runId, threadId] of runs) {
      await query(
        server,
        `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt, lease_until)
         values ($1, $2, gen_random_uuid(), 'none', 'running', '{}', 'enqueue', 1, now() + interval '1 hour')`,
        [runId, threadId],
      );
    }
    const renewal = new pg.Client({ connectionString: server.connectionString });
    await renewal.connect();
    try {
      await renewal.query("begin");
      await renewal.query(RENEW.text, [[runs[1][1]], [runs[1][0]], [1], 10]);
      const deleted = api.remove(`/assistants/${assistant_id}?delete_threads=true`);
      await eventually("the deletion waits for the renewal", async () => {
        const waiting = await query(server, "select 1 from pg_locks where not granted");
        return waiting.length > 0;
      });
      expect((await renewal.query(RENEW.text, [[runs[0][1]], [runs[0][0]], [1], 10])).rowCount).toBe(1);
      await renewal.query("commit");
      expect((await deleted).status).toBe(204);
      expect(await query(server, "select 1 from threadloom.threads")).toEqual([]);
    } finally {
      await renewal.end();
    }
  });
});
