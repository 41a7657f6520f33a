import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { programOf } from "../../helpers/compiled-package.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { ROOT } from "../server-process.ts";
import { startCountedServer } from "./counted-server.ts";
import { MAXIMA } from "./maxima.ts";
import type { RequestName } from "./requests.ts";
import { typicalOf } from "./typical.ts";

/*
 * Figures that do not depend on the machine's speed. The test passes as soon as each figure was within its maximum: periodic work and a
 * busy machine only raise figures.
 */

const isUpdating = (process.env["UPDATE_COUNTS"] ?? "") !== "";
const TRIES_AT_MOST = 150;
const TRIES_OF_AN_UPDATE = 12;
/** An index on metadata grows with each thread of the test, and its entries with the index. */
const WAL_MARGIN = 1.05;
/** The machine's speed decides how many writes share a statement. */
const CALLS_MARGIN = 1.005;

const updated: Record<string, Record<string, Record<string, number>>> = {};
afterAll(async () => {
  if (!isUpdating) return;
  const file = fileURLToPath(new URL("maxima.ts", import.meta.url));
  const text = `/** The maximum cost of a request, by TRACES. \`UPDATE_COUNTS=1 npx vitest run test/bench/counts\` writes this file. */
export const MAXIMA = ${JSON.stringify(updated)};`;
  await writeFile(file, await format(text, { ...(await resolveConfig(file)), filepath: file }));
});

/** Counts until each figure was within its maximum once. Returns the minimum of each figure. */
const expectWithin = async (
  traces: string,
  name: string,
  maxima: Readonly<Record<string, number>>,
  count: () => Promise<object>,
): Promise<void> => {
  const tries: Record<string, number>[] = [];
  const countHeld = async (): Promise<void> => {
    const counted = new Map<string, number>(Object.entries(await count()));
    tries.push(Object.fromEntries(Object.keys(maxima).map((figure) => [figure, counted.get(figure)!])));
  };
  if (isUpdating) {
    while (tries.length < TRIES_OF_AN_UPDATE) await countHeld();
    updated[traces] = { ...updated[traces], [name]: typicalOf(tries) };
    return;
  }
  const margins = new Map([
    ["walBytes", WAL_MARGIN],
    ["calls", CALLS_MARGIN],
  ]);
  const allowed = ([figure, maximum]: [string, number]): [string, number] => [
    figure,
    Math.round(maximum * (margins.get(figure) ?? 1)),
  ];
  const limits = Object.entries(maxima).map(allowed);
  const exceeded = (): string[] =>
    limits.flatMap(([figure, limit]) => {
      const least = Math.min(...tries.map((figures) => figures[figure]!));
      return least <= limit ? [] : [`${figure}: ${least} instead of ${limit} at most`];
    });
  do await countHeld();
  while (exceeded().length > 0 && tries.length < TRIES_AT_MOST);
  expect(exceeded()).toEqual([]);
};

describe.each(["off", "all"] as const)(
  "costs no more statements, rows, WAL and calls than before, with TRACES=%s",
  (traces) => {
    let fresh: FreshDatabase | undefined;
    let server: Awaited<ReturnType<typeof startCountedServer>> | undefined;
    beforeAll(async () => {
      fresh = await freshDatabase();
      server = await startCountedServer({
        root: dirname(dirname(programOf())),
        config: join(ROOT, "test/bench/graphs/langgraph.json"),
        connectionString: fresh.connectionString,
        traces,
      });
    });
    afterAll(async () => {
      await server?.close();
      await fresh?.drop();
    });

    for (const [name, maxima] of Object.entries(MAXIMA[traces])) {
      test(name, async () => {
        if (name === "idle") return await expectWithin(traces, name, maxima, () => server!.countIdle());
        const request = name as RequestName;
        await server!.warmUp(request);
        await expectWithin(traces, name, maxima, () => server!.count(request));
      });
    }
  },
);
