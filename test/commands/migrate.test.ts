import { realpath } from "node:fs/promises";
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

test("the last line names the database, and a remark says that a new one was made because none is named", async () => {
  const database = await freshDatabase();
  const folder = await temporaryFolder();
  onTestFinished(async () => {
    await folder.remove();
    await database.drop();
  });
  const { pathname, host } = new URL(database.connectionString);
  const named = await commandOf(["migrate"], {
    cwd: folder.path,
    environment: { DATABASE_URL: database.connectionString },
  });
  expect([named.out, named.stderr]).toEqual([
    `The tables of the database ${host}${pathname} are up to date.\n`,
    "",
  ]);
  const unnamed = await commandOf(["migrate"], { cwd: folder.path });
  const data = `${await realpath(folder.path)}/.threadloom`;
  expect(unnamed.out).toBe(`The tables of the embedded PostgreSQL in ${data} are up to date.\n`);
  // For people: no JSON.
  expect(unnamed.stderr).toMatch(/^\[[\d:]+\] WARN: no database is named, so a new one is made in /);
  const again = await commandOf(["migrate"], { cwd: folder.path });
  expect(again.stderr).toBe("");
});
