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

/** All of a server's connections are closed. */
const nothingIsOpen = () =>
  eventually("nothing is connected", async () => {
    const connected = await query(
      database,
      "select from pg_stat_activity where datname = current_database() and application_name like 'threadloom%'",
    );
    return connected.length === 0;
  });

test("a failed start leaves nothing running, such as a worker that looks for runs", async () => {
  // The assistants of the graphs are stored last before a server accepts requests.
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

test("a part that can't be closed does not keep the others open", async () => {
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
