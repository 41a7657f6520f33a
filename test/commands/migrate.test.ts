import { expect, onTestFinished, test } from "vitest";
import { commandOf } from "../helpers/command-process.ts";
import { freshDatabase } from "../helpers/database.ts";
import { query } from "../helpers/query.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

test("applied and pending migrations are listed by name; --check ends with 1 until all are applied", async () => {
  const database = await freshDatabase();
  const folder = await temporaryFolder();
  onTestFinished(async () => {
    await folder.remove();
    await database.drop();
  });
  const migrate = (...argv: string[]) =>
    commandOf(["migrate", ...argv], {
      cwd: folder.path,
      environment: { DATABASE_URL: database.connectionString },
    });

  const done = await migrate("--check");
  expect(done.code).toBe(0);
  expect(done.out).toMatch(/^applied {2}0001_baseline\.sql\n/);
  expect(done.out).not.toContain("pending");

  await query(database, "drop schema threadloom cascade");
  const pending = await migrate("--check", "--json");
  expect(pending.code).toBe(1);
  const { migrations } = JSON.parse(pending.out) as { migrations: { name: string; state: string }[] };
  expect(migrations.every(({ state }) => state === "pending")).toBe(true);
  expect(await query(database, "select from pg_namespace where nspname = 'threadloom'")).toEqual([]);
  expect((await migrate("--status")).code).toBe(0);

  expect((await migrate()).code).toBe(0);
  await query(database, "insert into threadloom.migrations (name, checksum) values ('9999_later.sql', '')");
  const newer = await migrate("--check");
  expect([newer.code, newer.out.includes("unknown  9999_later.sql\n")]).toEqual([1, true]);
});
