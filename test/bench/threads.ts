import { run, WIDTH } from "./load.ts";
import { createThreads, HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";

export const threads: Scenario = {
  name: "threads",
  about: `POST /threads, ${WIDTH} connections`,
  async run(bench) {
    const count = scaled(bench, 2_000);
    for (const { http } of bench.remotes) await run(WIDTH, 200, () => http.post("/threads", {}));
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      for (const { name, http } of bench.remotes) {
        const { perSecond } = await run(WIDTH, count, () => http.post("/threads", {}));
        bench.figures.add(
          "threads",
          { label: "created", unit: "threads/s", better: "more", wanted: ">= 2,000" },
          name,
          perSecond,
        );
        bench.progress(`threads: ${name}: ${perSecond.toFixed(0)} created/s`);
      }
    }
  },
};

const TURNS = 20;
const HISTORY_LENGTH = 10;
const STATES = { label: "state", unit: "reads/s", better: "more", wanted: ">= 1,000" } as const;
const HISTORIES = {
  label: `history of ${HISTORY_LENGTH}`,
  unit: "reads/s",
  better: "more",
  wanted: ">= 200",
} as const;

/** Checks that the read values are the written ones. */
const expectMessages = (values: unknown, wanted: number): void => {
  const found = (values as { messages?: unknown[] } | undefined)?.messages?.length;
  if (found !== wanted) throw new Error(`A thread has ${found} messages instead of ${wanted}.`);
};

export const state: Scenario = {
  name: "state",
  about: `reads of a thread of ${TURNS} turns of three messages, ${WIDTH} at a time`,
  async run(bench) {
    const reads = { states: scaled(bench, 1_000), histories: scaled(bench, 200) };
    const readers = [];
    for (const { name, http } of bench.remotes) {
      const [threadId] = await createThreads({ http } as Bench["remotes"][number], 1);
      for (let turn = 0; turn < TURNS; turn += 1) {
        await http.post(`/threads/${threadId}/runs/wait`, { assistant_id: "two-step", input: HELLO });
      }
      const found = await http.json<{ values: unknown }>(`/threads/${threadId}/state`);
      expectMessages(found.values, TURNS * 3);
      const history = await http.json<unknown[]>(`/threads/${threadId}/history?limit=${HISTORY_LENGTH}`);
      if (history.length !== HISTORY_LENGTH) throw new Error(`A history has ${history.length} states.`);
      readers.push({
        name,
        state: () => http.get(`/threads/${threadId}/state`),
        history: () => http.get(`/threads/${threadId}/history?limit=${HISTORY_LENGTH}`),
      });
    }
    for (const library of [bench.libraries.memory(), bench.libraries.official]) {
      const graph = library.graph("two-step");
      const config = library.newThread();
      for (let turn = 0; turn < TURNS; turn += 1) await graph.invoke(HELLO, config);
      expectMessages((await graph.getState(config)).values, TURNS * 3);
      readers.push({
        name: library.name,
        // As text, like a server's answer.
        state: async () => JSON.stringify((await graph.getState(config)).values),
        async history() {
          for await (const snapshot of graph.getStateHistory(config, { limit: HISTORY_LENGTH }))
            JSON.stringify(snapshot.values);
        },
      });
    }
    for (const reader of readers) await run(WIDTH, 50, reader.history);
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      for (const reader of readers) {
        const states = await run(WIDTH, reads.states, reader.state);
        const histories = await run(WIDTH, reads.histories, reader.history);
        bench.figures.add("state", STATES, reader.name, states.perSecond);
        bench.figures.add("state", HISTORIES, reader.name, histories.perSecond);
        bench.progress(
          `state: ${reader.name}: ${states.perSecond.toFixed(0)} states/s, ${histories.perSecond.toFixed(0)} histories/s`,
        );
      }
    }
  },
};

const SEARCHED_THREADS = 5_000;
/** Threads of one owner: the result of a search. */
const THREADS_PER_OWNER = 10;

export const search: Scenario = {
  name: "search",
  about: `POST /threads/search over ${SEARCHED_THREADS} threads, by metadata; ${THREADS_PER_OWNER} match; ${WIDTH} connections`,
  async run(bench) {
    const searches = scaled(bench, 2_000);
    const owners = SEARCHED_THREADS / THREADS_PER_OWNER;
    for (const { http } of bench.remotes) {
      await run(WIDTH, SEARCHED_THREADS, (index) =>
        http.post("/threads", { metadata: { owner: `owner-${index % owners}`, place: "benchmark" } }),
      );
      const found = await http.json<unknown[]>("/threads/search", { metadata: { owner: "owner-7" } });
      if (found.length !== THREADS_PER_OWNER) throw new Error(`A search found ${found.length} threads.`);
    }
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      for (const { name, http } of bench.remotes) {
        const { perSecond } = await run(WIDTH, searches, (index) =>
          http.post("/threads/search", { metadata: { owner: `owner-${index % owners}` }, limit: 10 }),
        );
        bench.figures.add(
          "search",
          { label: "by metadata", unit: "searches/s", better: "more", wanted: ">= 2,000" },
          name,
          perSecond,
        );
        bench.progress(`search: ${name}: ${perSecond.toFixed(0)} searches/s`);
      }
    }
  },
};
