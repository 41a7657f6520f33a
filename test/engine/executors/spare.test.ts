import { expect, test } from "vitest";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import type { Metrics } from "../../../src/api/status/schemas.ts";
import { HOSTILE_GRAPHS } from "./graphs/config-file.ts";

const WITHIN_MS = 120_000;

test(
  "when the only graph process dies, the spare takes its place, and the metrics count it",
  { timeout: 3 * WITHIN_MS },
  async () => {
    const server = await startTestServer({ graphConfigFile: HOSTILE_GRAPHS, graphProcesses: 1 });
    try {
      const api = apiOf(server);
      const figures = async () => (await api.get<Metrics>("/metrics?format=json")).body.graph_processes;
      const untilSpareIsReady = () =>
        eventually("a spare is ready", async () => (await figures())?.spare === 1, WITHIN_MS);
      const whoExecutes = async () => {
        const run = { assistant_id: "hostile", input: {} };
        return (await api.post<{ pid: number; born: number }>("/runs/wait", run)).body;
      };
      await untilSpareIsReady();
      const { pid } = await whoExecutes();
      const killedAt = Date.now();
      process.kill(pid, "SIGKILL");
      await eventually("it is missed", async () => (await figures())?.deaths["signal"] === 1, WITHIN_MS);
      const next = await whoExecutes();
      expect(next.pid).not.toBe(pid);
      expect(next.born).toBeLessThan(killedAt);
      await untilSpareIsReady();
      expect(await figures()).toEqual({
        working: 1,
        spare: 1,
        starting: 0,
        deaths: { exit: 0, signal: 1, blocked: 0, unstopped: 0, memory: 0, start: 0 },
      });
      const { text } = await server.client.get("/metrics");
      expect(text).toContain('\nthreadloom_graph_processes{state="spare"} 1\n');
      expect(text).toContain('\nthreadloom_graph_process_deaths_total{reason="signal"} 1\n');
    } finally {
      await server.close();
    }
  },
);
