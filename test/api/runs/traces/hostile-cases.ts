import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Span, Trace } from "../../../../src/api/runs/traces/schemas.ts";
import type { TracedRuns } from "../../../../src/engine/traces/attempt-records.ts";
import type { Api } from "../../../helpers/api.ts";
import type { TestServer } from "../../../helpers/app.ts";
import { query } from "../../../helpers/query.ts";
import { onServer } from "../../../helpers/servers.ts";

const GRAPHS = fileURLToPath(new URL("./hostile.json", import.meta.url));
/** What the trace shows of the values of `hostileTools`. */
const RESULTS = [
  "\u0000\ufffd",
  '{"name":"me\\u0000\\ud800","self":"(circular',
  "(can't be shown)",
  "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
  "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
  '{"key0":0,"key1":1,"key2":2,"key3":3,"key',
  "😀".repeat(20),
  '{"big":1,"map":{},"date":"1970-01-01T00:0',
  "1",
];

const toolsOf = ({ attempts }: Trace): Span[] => attempts[0]!.spans.filter(({ kind }) => kind === "tool");

/** Nothing that a graph, a model or a tool says keeps a run from ending, or changes what the graph sees. */
export const testHostileGraphs = (options: { traces: TracedRuns; graphProcesses: number }): void => {
  describe(`with TRACES=${options.traces} and ${options.graphProcesses} graph processes`, () => {
    const { traces } = options;
    const showsSuccesses = traces === "all";
    let server: TestServer;
    let api: Api;
    onServer({ graphConfigFile: GRAPHS, ...options }, (opened) => ({ server, api } = opened));

    const traced = async (graph: string, status: "success" | "error" = "success"): Promise<Trace> => {
      const threadId = await api.aThread();
      const run = await api.aRun(threadId, { assistant_id: graph, input: { count: 1 } });
      const ended = await api.untilRunIs(threadId, run.run_id, "success", "error");
      expect(ended.status, JSON.stringify(ended.error)).toBe(status);
      const answer = await api.get<Trace>(`/threads/${threadId}/runs/${run.run_id}/trace`);
      expect(answer.status).toBe(200);
      // A run whose end was refused would go on in a second attempt, and end.
      expect(answer.body.attempts).toHaveLength(1);
      return answer.body;
    };

    test.each([
      ["nulInModel", "a\ufffdb\ufffd"],
      ["cutName", `${"x".repeat(99)}\ufffd`],
    ])("the name of a model that PostgreSQL can't store is repaired: %s", async (graph, model) => {
      const { usage } = await traced(graph);
      expect(usage).toMatchObject([{ model, calls: 1, input_tokens: 11 }]);
    });

    test("sums of huge numbers of tokens can be stored, and summed again", async () => {
      const { usage } = await traced("hugeTokens");
      expect(usage).toMatchObject([{ model: "huge", calls: 1_100, input_tokens: 1_100 * 1_000_000_000 }]);
      expect(usage[0]?.cost).toBeGreaterThan(0);
      expect((await api.get("/usage")).status).toBe(200);
    });

    test("what is no number of tokens counts as none", async () => {
      const { usage } = await traced("oddTokens");
      expect(usage).toMatchObject([{ model: "odd", calls: 8, input_tokens: 0, output_tokens: 0 }]);
    });

    test("a run stores the usage of at most 101 models; the others are summed", async () => {
      const { usage } = await traced("manyModels");
      expect(usage).toHaveLength(101);
      expect(usage.reduce((sum, { calls }) => sum + calls, 0)).toBe(1_000);
      expect(usage.find(({ model }) => model === "other models")?.calls).toBe(900);
    });

    test("a model may be called with callbacks of null", async () => {
      expect((await traced("nullCallbacks")).usage).toMatchObject([{ calls: 1 }]);
    });

    test("tools may return anything", async () => {
      const shown = toolsOf(await traced("hostileTools"));
      if (!showsSuccesses) return expect(shown).toEqual([]);
      expect(shown.map(({ name }) => name)).toContain("(no name)");
      expect(shown.map(({ result }) => result?.slice(0, 40))).toEqual(
        RESULTS.map((text) => text.slice(0, 40)),
      );
      for (const { result = "" } of shown) {
        expect(result.length).toBeLessThanOrEqual(2_001);
        expect(result.isWellFormed()).toBe(true);
      }
    });

    test("tools may throw anything, and the graph sees the same", async () => {
      const shown = toolsOf(await traced("hostileErrors"));
      if (!showsSuccesses) return expect(shown).toEqual([]);
      expect(shown.map(({ status }) => status)).toEqual(shown.map(() => "error"));
      expect(shown.map(({ error }) => error?.message)).toContain("(can't be shown)");
    });

    test("the trace of a run that fails with an odd error is stored, unless traces are off", async () => {
      const { attempts } = await traced("failsOddly", "error");
      const shown = attempts[0]!.spans.map(({ kind, status, error }) => [kind, status, error?.message]);
      expect(shown).toEqual(traces === "off" ? [] : [["node", "error", "(can't be shown)"]]);
    });

    test("a run ends although the database refuses its records", async () => {
      await query(
        server,
        "alter table threadloom.model_usage add constraint refuses check (model <> 'odd') not valid",
      );
      try {
        const { status, usage } = await traced("oddTokens");
        expect({ status, usage }).toEqual({ status: "success", usage: [] });
      } finally {
        await query(server, "alter table threadloom.model_usage drop constraint refuses");
      }
    });
  });
};
