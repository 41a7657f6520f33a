import { afterEach, describe, expect, test } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../helpers/database.ts";
import { query } from "../helpers/query.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";
import { isAtGate } from "../fixtures/gates.ts";

const databases: FreshDatabase[] = [];
afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop();
});

/** A process that hands back its runs at once when it stops, and checks for cancels only when the test asks. */
const aServer = async (): Promise<TestServer> => {
  const database = await freshDatabase();
  databases.push(database);
  return await startTestServer({
    graphConfigFile: ENGINE_GRAPHS,
    connectionString: database.connectionString,
    shutdownGraceSeconds: 0,
    heartbeatSeconds: 4,
  });
};

describe("a process that stops", () => {
  test.each(["interrupt", "rollback"])(
    "carries out a cancel (%s) that it had not received yet, and does not hand back the run",
    async (action) => {
      const server = await aServer();
      const api = apiOf(server);
      const threadId = await api.aThread();
      const run = await api.aRun(threadId, { assistant_id: "gate", input: { label: `unheard ${action}` } });
      await eventually("it is at its gate", () => isAtGate(`unheard ${action}`));
      await query(server, "update threadloom.runs set cancel_action = $2 where run_id = $1", [
        run.run_id,
        action,
      ]);
      await server.close();
      const rows = await query(server, "select status from threadloom.runs where run_id = $1", [run.run_id]);
      expect(rows).toEqual(action === "rollback" ? [] : [{ status: "interrupted" }]);
      expect(await query(server, "select unfinished_runs from threadloom.threads")).toEqual([
        { unfinished_runs: 0 },
      ]);
    },
  );

  test("hands back a run without a cancel, and the next process continues it", async () => {
    const server = await aServer();
    const api = apiOf(server);
    const run = await api.aRun(await api.aThread(), { assistant_id: "gate", input: { label: "wanted" } });
    await eventually("it is at its gate", () => isAtGate("wanted"));
    await server.close();
    expect(
      await query(server, "select status, lost_attempts from threadloom.runs where run_id = $1", [
        run.run_id,
      ]),
    ).toEqual([{ status: "pending", lost_attempts: 0 }]);
  });
});
