import pg from "pg";
import { expect, test } from "vitest";
import { migrate } from "../../../src/platform/database/migrate.ts";
import { createQueue } from "../../../src/engine/queue/queue.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { openQueue } from "../../engine/queue/open-queue.ts";

test("processes that start at once without advisory locks create the tables once, and all of them start", async () => {
  const { connectionString, drop } = await freshDatabase();
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query("drop schema threadloom cascade");
    const { logger } = listeningLogger();
    const options = { schema: "threadloom", advisoryLocks: false, logger };
    await Promise.all(Array.from({ length: 4 }, () => migrate(connectionString, options)));
    const { rows } = await client.query<{ names: number; distinct: number }>(
      "select count(*)::int as names, count(distinct name)::int as distinct from threadloom.migrations",
    );
    expect(rows[0]?.names).toBeGreaterThan(0);
    expect(rows[0]?.distinct).toBe(rows[0]?.names);
  } finally {
    await client.end();
    await drop();
  }
});

test("a worker with a lost session is noticed at half of its lease, and without sessions at the end of the lease", async () => {
  const opened = await openQueue();
  try {
    const requeuedBy = async (seesDeaths: boolean) => {
      const queue = createQueue(opened.database, { maxAttempts: 3, graphIds: ["test"], seesDeaths });
      return (await queue.requeueLost(10)).map((run) => run.run_id);
    };
    const half = await opened.aRun({ status: "running", workerId: newId(), leaseFor: 3 });
    const over = await opened.aRun({ status: "running", workerId: newId(), leaseFor: -1 });
    expect(await requeuedBy(false)).toEqual([over.runId]);
    expect(await requeuedBy(true)).toEqual([half.runId]);
  } finally {
    await opened.close();
  }
});
