import { expect, onTestFinished, test } from "vitest";
import { apiOf } from "../../helpers/api.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { isAlive } from "../../helpers/is-alive.ts";
import { endLeases, PATIENT_LEASES_ENVIRONMENT } from "../../helpers/leases.ts";
import { spawnServer } from "../../helpers/server-process.ts";
import { HOSTILE_GRAPHS } from "./graphs/config-file.ts";

const WITHIN_MS = 120_000;

test(
  "a graph process exits when its server is killed, even if a graph loops; another server continues its runs",
  { timeout: 3 * WITHIN_MS },
  async () => {
    const database = await freshDatabase();
    const start = () =>
      spawnServer(["--config", HOSTILE_GRAPHS, "--port", "0", "--workers", "1"], {
        DATABASE_URL: database.connectionString,
        ...PATIENT_LEASES_ENVIRONMENT,
      });
    const servers = [start(), start()] as const;
    onTestFinished(async () => {
      await Promise.all(servers.map((server) => server.kill()));
      await database.drop();
    });
    const [first, second] = servers;
    const api = apiOf({ url: await first.address() });
    const threadId = await api.aThread();
    const input = { harm: "loop", attempts: 1, steps: 2 };
    const run = await api.aRun(threadId, { assistant_id: "hostile", input });
    const pid = await eventually(
      "the run has reported its process",
      async () => (await api.state(threadId)).values["pid"] as number | undefined,
      WITHIN_MS,
    );
    expect(isAlive(pid)).toBe(true);
    await first.kill();
    await endLeases(database);
    await eventually("the graph process has ended", () => !isAlive(pid), WITHIN_MS);
    const other = apiOf({ url: await second.address() });
    const ended = await eventually(
      "the run has ended",
      async () => {
        const row = await other.run(threadId, run.run_id);
        return ["pending", "running"].includes(row.status) ? undefined : row;
      },
      WITHIN_MS,
    );
    expect(ended.status).toBe("success");
    expect((await other.state(threadId)).values).toMatchObject({ done: 2 });
  },
);
