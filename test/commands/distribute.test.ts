import { expect, onTestFinished, test } from "vitest";
import { commandOf } from "../helpers/command-process.ts";
import { freshDatabase } from "../helpers/database.ts";
import { query } from "../helpers/query.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

test("a database that is no Citus cluster is refused in words, and stays as it is", async () => {
  const database = await freshDatabase();
  const folder = await temporaryFolder();
  onTestFinished(async () => {
    await folder.remove();
    await database.drop();
  });
  const distribute = (environment: Record<string, string>, ...argv: string[]) =>
    commandOf(["distribute", ...argv], { cwd: folder.path, environment });
  const here = { DATABASE_URL: database.connectionString };

  for (const argv of [[], ["--dry-run"]]) {
    const refused = await distribute(here, ...argv);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("has no extension citus")]);
  }
  const keys = await query<{ columns: string }>(
    database,
    "select pg_get_constraintdef(oid) as columns from pg_constraint where conname = 'runs_pkey'",
  );
  expect(keys).toEqual([{ columns: "PRIMARY KEY (run_id)" }]);

  const tooMany = await distribute(here, "--shards", "5000");
  expect([tooMany.code, tooMany.stderr]).toEqual([1, expect.stringContaining("from 1 to 1024")]);
  const embedded = await distribute({}, "--dry-run");
  expect([embedded.code, embedded.stderr]).toEqual([1, expect.stringContaining("embedded PostgreSQL")]);
  const status = await distribute(here, "--status");
  expect([status.code, status.out]).toEqual([0, "The tables are not distributed.\n"]);
});
