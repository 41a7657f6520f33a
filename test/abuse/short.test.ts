import { expect, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { NOBODY } from "./callers.ts";
import { runStorm } from "./storm.ts";

/** Another one for whoever wants to look further; `npm run test:abuse` sends twenty times as many requests. */
const SEED = Number(process.env["ABUSE_SEED"] ?? 20_261_121);
const REQUESTS = Number(process.env["ABUSE_REQUESTS"] ?? 2_500);

test(
  "no mutated request of any route, on poisoned threads neither, is a fault of ours, hangs or spoils a search",
  { timeout: 600_000 },
  async () => {
    const server = await startTestServer();
    try {
      const report = await runStorm({
        url: server.url,
        document: server.app.swagger(),
        seed: SEED,
        requests: REQUESTS,
        atATime: 16,
        assistants: ["agent", "counter", "two-step", "approval"],
        callers: NOBODY,
      });
      process.stdout.write(`seed ${SEED}: ${JSON.stringify(report.answers)}\n`);
      expect(report.complaints).toEqual([]);
      expect(report.requests).toBe(REQUESTS);
    } finally {
      await server.close();
    }
  },
);
