import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freshDatabase, type FreshDatabase } from "../helpers/database.ts";
import { compareHistory } from "./histories/compare.ts";
import { formatFailure, runHistories } from "./histories/histories.ts";
import { startTwoServers, type TwoServers } from "./histories/servers.ts";

let database: FreshDatabase;
let servers: TwoServers;
beforeAll(async () => {
  database = await freshDatabase();
  servers = await startTwoServers(database.connectionString, process.stderr);
});
afterAll(async () => {
  await servers.close();
  await database.drop();
});

const COMMON = { server: 0, reader: 1, look: 1 };

describe("a thread on two servers has the states that LangGraph alone gives it", () => {
  it("after each operation of random histories", async () => {
    const failures: string[] = [];
    await runHistories({
      send: servers.send,
      seed: 1,
      count: 60,
      jobs: 4,
      shrinkMs: 30_000,
      failuresAtMost: 3,
      onFailure: (failure) => failures.push(formatFailure(failure)),
    });
    expect(failures).toEqual([]);
  });

  it("after a copy of a state to which an update without values added what a task had written", async () => {
    const input = {
      log: ["before"],
      plan: { route: "both", b: [{ act: "ask", count: 1 }], c: [{ act: "log", number: 1 }] },
    };
    const difference = await compareHistory(
      {
        graph: "shop",
        supersteps: [],
        operations: [
          { do: "run", input, ...COMMON },
          { do: "update", values: null, as: "d", ...COMMON },
          { do: "update", values: null, as: "__copy__", ...COMMON },
        ],
      },
      servers.send,
    );
    expect(difference).toBeUndefined();
  });

  it("after a run from the newest checkpoint of a subgraph that waits for an answer", async () => {
    const input = { plan: { route: "one", i1: [{ act: "ask", count: 2 }] } };
    const difference = await compareHistory(
      {
        graph: "nest",
        supersteps: [],
        operations: [
          { do: "run", input, ...COMMON },
          { do: "run in subgraph", subgraph: 0, input: null, ...COMMON },
        ],
      },
      servers.send,
    );
    expect(difference).toBeUndefined();
  });

  it("after a run with durability exit that stores again what a failed step had written", async () => {
    const difference = await compareHistory(
      {
        graph: "delta",
        supersteps: [],
        operations: [
          { do: "command", goto: ["b"], ...COMMON },
          { do: "run", input: { plan: {} }, ...COMMON },
          { do: "run", input: null, at: 2, ...COMMON },
          { do: "command", goto: ["d"], send: true, at: 7, ...COMMON },
          { do: "command", durability: "exit", ...COMMON },
        ],
      },
      servers.send,
    );
    expect(difference).toBeUndefined();
  });

  it("after a copy with an update that the graph refuses: nothing is stored", async () => {
    const difference = await compareHistory(
      {
        graph: "nest",
        supersteps: [],
        operations: [
          { do: "run", input: {}, ...COMMON },
          { do: "update subgraph", subgraph: 0, values: [[{}, "unknown"]], as: "__copy__", ...COMMON },
          { do: "update", values: [[{}, "unknown"]], as: "__copy__", ...COMMON },
        ],
      },
      servers.send,
    );
    expect(difference).toBeUndefined();
  });

  it("after a run at an earlier checkpoint at which nothing is due, while a question waits at the newest", async () => {
    const input = { plan: { route: "one", b: [{ act: "ask", count: 1 }] } };
    const difference = await compareHistory(
      {
        graph: "shop",
        supersteps: [],
        operations: [
          { do: "update", values: { log: ["by hand"] }, as: "d", ...COMMON },
          { do: "run", input, ...COMMON },
          { do: "run", input: null, at: 3, ...COMMON },
        ],
      },
      servers.send,
    );
    expect(difference).toBeUndefined();
  });

  it("after a falsy answer to a question that still waits after a failed run", async () => {
    const difference = await compareHistory(
      {
        graph: "functional",
        supersteps: [],
        operations: [
          { do: "run", input: { asks: 1 }, ...COMMON },
          { do: "command", ...COMMON },
          { do: "resume", ids: false, count: 1, answers: [""], ...COMMON },
        ],
      },
      servers.send,
    );
    expect(difference).toBeUndefined();
  });

  it("after a falsy answer to the questions of an earlier checkpoint", async () => {
    const input = { plan: { route: "both", b: [{ act: "ask", count: 2 }] } };
    const difference = await compareHistory(
      {
        graph: "shop",
        supersteps: [],
        operations: [
          { do: "run", input, ...COMMON },
          { do: "update", values: null, as: "__end__", ...COMMON },
          { do: "resume", ids: false, count: 1, answers: [0], at: 1, ...COMMON },
        ],
      },
      servers.send,
    );
    expect(difference).toBeUndefined();
  });
});
