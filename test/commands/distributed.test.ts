import { expect, onTestFinished, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { citusNodes, databaseNamed } from "../helpers/citus.ts";
import { commandOf } from "../helpers/command-process.ts";
import { freshDatabase } from "../helpers/database.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

/** The commands on a cluster, which TEST_CITUS_NODES names. Skipped without one. */
const [, worker = ""] = citusNodes();

const onCluster = async () => {
  const database = await freshDatabase();
  const folder = await temporaryFolder();
  onTestFinished(async () => {
    await folder.remove();
    await database.drop();
  });
  return {
    connectionString: database.connectionString,
    /** The same database, at a worker node's own address. */
    workerUrl: databaseNamed(worker, new URL(database.connectionString).pathname.slice(1)),
    run: (argv: string[], url = database.connectionString) =>
      commandOf(argv, { cwd: folder.path, environment: { DATABASE_URL: url } }),
  };
};

test.skipIf(worker === "")("distributed tables keep their parts, and say how many", async () => {
  const { run } = await onCluster();
  expect((await run(["distribute", "--status"])).out).toMatch(/ {2}\d+ parts? of all threads\n/);
  const again = await run(["distribute"]);
  expect([again.code, again.out]).toEqual([0, expect.stringContaining("of all threads")]);
  const other = await run(["distribute", "--shards", "3"]);
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("divided into 4 parts already")]);
});

test.skipIf(worker === "")("nothing is distributed while a server runs, whatever its role", async () => {
  const { run, connectionString } = await onCluster();
  const server = await startTestServer({ connectionString, role: "api" });
  try {
    const refused = await run(["distribute"]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("Stop all servers first")]);
    expect((await run(["distribute", "--dry-run"])).code).toBe(0);
  } finally {
    await server.close();
  }
});

test.skipIf(worker === "")("the address of a worker node is refused", async () => {
  const { run, workerUrl } = await onCluster();
  const migrated = await run(["migrate"], workerUrl);
  expect([migrated.code, migrated.stderr]).toEqual([1, expect.stringContaining("Use the coordinator's.")]);
  const checked = await run(["doctor"], workerUrl);
  expect([checked.code, checked.out]).toEqual([1, expect.stringContaining("is a worker node of Citus")]);
  const distributed = await run(["distribute"], workerUrl);
  expect([distributed.code, distributed.stderr]).toEqual([1, expect.stringContaining("not the coordinator")]);
});
