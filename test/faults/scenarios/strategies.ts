import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Scenario } from "../scenario.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const MODEL_TESTS = ["test/engine/strategies.property.test.ts", "test/engine/takeovers.property.test.ts"];

/** 12: the tests are among the engine's other tests; here they run once more for their result. */
export const strategiesAgainstModel = (): Scenario => ({
  number: 12,
  title: "strategies x create x cancel x finish x lose x take over, drawn by fast-check",
  criterion: "what the server does is what a model says, under every interleaving",
  async run() {
    return await new Promise((resolve) => {
      execFile(
        "npx",
        ["vitest", "run", "--passWithNoTests", "--reporter=json", ...MODEL_TESTS],
        { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 },
        (_error, stdout) => {
          const report = JSON.parse(stdout.slice(stdout.indexOf("{"))) as {
            numPassedTests: number;
            numFailedTests: number;
          };
          const { numPassedTests: passed, numFailedTests: failed } = report;
          resolve({
            figure: `${passed} tests passed, ${failed} failed`,
            complaints: failed > 0 || passed === 0 ? ["not all of them passed, or there are none"] : [],
          });
        },
      );
    });
  },
});
