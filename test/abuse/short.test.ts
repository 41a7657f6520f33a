import { expect, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { NOBODY } from "./callers.ts";
import { runStorm } from "./storm.ts";

/** Set another seed to test more; `npm run test:abuse` sends twenty times as many requests. */
const SEED = Number(process.env["ABUSE_SEED"] ?? 20_261_121);
const REQUESTS = Number(process.env["ABUSE_REQUESTS"] ?? 2_500);

test(
  "no mutated request of any route, also on poisoned threads, causes a server error, hangs or breaks a search",
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
