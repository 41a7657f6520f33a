import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { TestServer } from "../helpers/app.ts";
import { onServer } from "../helpers/servers.ts";
import { checkStreams } from "./streams/check.ts";

/** `npm run test:streams` compares more. */

let server: TestServer;
onServer(
  {
    graphConfigFile: fileURLToPath(new URL("./streams/langgraph.json", import.meta.url)),
    runsPerMinute: 0,
    readsPerMinute: 0,
    writesPerMinute: 0,
    streamsPerMinute: 0,
  },
  (opened) => ({ server } = opened),
);

test.each([1, 2])(
  "runs stream what LangGraph alone streams: all modes, subgraphs, questions, failures, replays (seed %i)",
  async (seed) => {
    const { streams, difference } = await checkStreams(server.url, seed, 70);
    expect(difference).toBeUndefined();
    expect(streams).toBeGreaterThanOrEqual(70);
  },
);
