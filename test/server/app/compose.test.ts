import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startTestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { query } from "../../helpers/query.ts";

let database: FreshDatabase;
beforeEach(async () => {
  database = await freshDatabase();
});
afterEach(() => database.drop());

/** Nothing of a server is connected any more. */
const nothingIsOpen = () =>
  eventually("nothing is connected", async () => {
    const connected = await query(
      database,
      "select from pg_stat_activity where datname = current_database() and application_name like 'threadloom%'",
    );
    return connected.length === 0;
  });

test("a start that fails leaves nothing behind that goes on, such as a worker that looks for runs", async () => {
  // The very last thing that is stored before a server takes requests: its graphs' assistants.
  await query(database, "alter table threadloom.assistants add constraint refused check (false) not valid");
  const started = vi.spyOn(globalThis, "setInterval");
  const stopped = vi.spyOn(globalThis, "clearInterval");
  try {
    await expect(startTestServer({ connectionString: database.connectionString })).rejects.toThrow(/refused/);
    const timers = started.mock.results.map(({ value }) => value as NodeJS.Timeout);
    const ended = stopped.mock.calls.map(([timer]) => timer);
    expect(timers.length).toBeGreaterThan(0);
    expect(timers.filter((timer) => !ended.includes(timer))).toEqual([]);
  } finally {
    vi.restoreAllMocks();
  }
  await nothingIsOpen();
});

test("what can't be closed does not keep the rest open", async () => {
  const server = await startTestServer({ connectionString: database.connectionString });
  const { app } = server;
  const closeApp = app.close.bind(app);
  Object.assign(app, {
    close: async () => {
      await closeApp();
      throw new Error("a graph's hook refuses to end");
    },
  });
  await expect(server.close()).rejects.toThrow("Not everything could be closed.");
  await nothingIsOpen();
});
