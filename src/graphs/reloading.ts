import type { Graphs } from "./graphs.ts";

export interface ReloadingGraphs extends Graphs {
  /** An error keeps the current graphs. Changes `ids` in place, because other parts hold the list. */
  reload(): Promise<void>;
}

/** @param load gets no edition the first time */
export const createReloadingGraphs = async (
  load: (edition: number | undefined) => Promise<Graphs>,
): Promise<ReloadingGraphs> => {
  let graphs = await load(undefined);
  let edition = 1;
  const ids = [...graphs.ids];
  return {
    ids,
    has: (id) => graphs.has(id),
    description: (id) => graphs.description(id),
    isFactory: (id) => graphs.isFactory(id),
    classesOf: (id) => graphs.classesOf(id),
    tracerOf: (...asked) => graphs.tracerOf(...asked),
    resolve: (...asked) => graphs.resolve(...asked),
    schemas: (...asked) => graphs.schemas(...asked),
    describe: (...asked) => graphs.describe(...asked),
    readAhead: () => graphs.readAhead(),
    declaredInput: (id) => graphs.declaredInput(id),
    drawing: (...asked) => graphs.drawing(...asked),
    subgraphs: (...asked) => graphs.subgraphs(...asked),
    async reload() {
      edition += 1;
      const next = await load(edition);
      const before = graphs;
      graphs = next;
      ids.splice(0, ids.length, ...next.ids);
      await before.close();
    },
    close: () => graphs.close(),
  };
};
