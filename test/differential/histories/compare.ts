import { isDeepStrictEqual } from "node:util";
import { createLangGraphSide, UnreadableError, type LangGraphSide } from "./langgraph-side.ts";
import type { History, Operation } from "./operations.ts";
import { createServerSide, ServerFault, type Send, type ServerSide } from "./server-side.ts";
import { KEEPER, type Outcome, type Side } from "./side.ts";
import { withoutIds, type Seen, type View } from "./views.ts";

export interface Difference {
  /** The operation's place in the history; -1: the creation of the thread. */
  after: number;
  /** What differs, without numbers: a shorter history counts as the same if it differs here, too. */
  what: string;
  path: string;
  expected: unknown;
  actual: unknown;
  /** The same operations, whose places count from the newest checkpoint. So they stay the same in a shorter history. */
  operations: Operation[];
}

interface Place {
  path: string;
  expected: unknown;
  actual: unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** The first place at which two values differ. */
const firstDifference = (expected: unknown, actual: unknown, path = ""): Place | undefined => {
  if (isDeepStrictEqual(expected, actual)) return undefined;
  if (!isObject(expected) || !isObject(actual) || Array.isArray(expected) !== Array.isArray(actual))
    return { path, expected, actual };
  for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    const place = firstDifference(expected[key], actual[key], `${path}.${key}`);
    if (place !== undefined) return place;
  }
  return { path, expected, actual };
};

class Differs extends Error {
  constructor(
    readonly what: string,
    readonly place: Place,
  ) {
    super(what);
  }
}

const expectSame = (what: string, expected: unknown, actual: unknown): void => {
  const place = firstDifference(expected, actual);
  if (place !== undefined) throw new Differs(what, place);
};

/** LangGraph's, if several tasks failed before it looked. On a server one of them is usually seen first. */
const SEVERAL = /^Multiple errors occurred during superstep/;
/**
 * A reducer of LangGraph refuses what tasks have written. LangGraph then reads the thread no more or loses the step, while the server leaves
 * the writes out, and shows why at their tasks (docs/decisions/012-refused-writes.md).
 */
/** What the server puts before LangGraph's words. */
const OF_INPUT = /^'input' does not fit the graph: /;
const REFUSED = /^(Invalid update for channel|Attempting to delete a message with an ID)/;

/** The server cuts longer ones. */
const MESSAGE_LENGTH = 1_000;

/**
 * The server refuses in its own words. The questions of parallel tasks come in the order in which the tasks stopped, which is not fixed.
 */
const comparable = (outcome: Outcome, isOneOfSeveral: boolean): unknown => {
  switch (outcome.kind) {
    case "values":
      return { ...outcome, interrupts: outcome.interrupts.map((value) => JSON.stringify(value)).sort() };
    case "failed":
      return isOneOfSeveral ? {} : withoutIds(outcome.message.replace(OF_INPUT, "").slice(0, MESSAGE_LENGTH));
    default:
      return {};
  }
};

const expectSameOutcome = (what: string, expected: Outcome, actual: Outcome): void => {
  if (expected.kind === "nothing" && actual.kind === "values") return;
  if (expected.kind !== actual.kind) throw new Differs(what, { path: "", expected, actual });
  const isOneOfSeveral = expected.kind === "failed" && SEVERAL.test(expected.message);
  expectSame(what, comparable(expected, isOneOfSeveral), comparable(actual, isOneOfSeveral));
};

const idsOf = (seen: readonly Seen[]): string[] => seen.flatMap(({ id }) => id ?? []);

/** States with the places of their parents among `places`; -1: before them. */
const withParents = (seen: readonly Seen[], places: readonly string[]): unknown[] =>
  seen.map(({ view, parentId }) => ({
    ...view,
    parent: parentId === undefined ? -1 : places.indexOf(parentId),
  }));

interface Thread<Kind extends Side> {
  side: Kind;
  /** Of the comparable checkpoints, the newest first. */
  places: string[];
}

const EVERYTHING = 1_000;
/** States before the new ones. */
const KNOWN_AGAIN = 2;

const compareNewest = async (
  reader: number,
  langGraph: Thread<LangGraphSide>,
  server: Thread<Side>,
  { isWhole, pruned }: { isWhole: boolean; pruned: boolean },
): Promise<void> => {
  const ids = langGraph.side.ids();
  const newestKnown = ids.findIndex((id) => id === langGraph.places[0]);
  const fresh = newestKnown < 0 ? ids.length : newestKnown;
  const [formerNewest] = server.places;
  // LangGraph alone has pruned nothing.
  const comparable = pruned ? fresh + langGraph.places.length : EVERYTHING;
  const limit = Math.min(isWhole ? EVERYTHING : fresh + KNOWN_AGAIN, comparable);
  const expected = limit === 0 ? [] : await langGraph.side.history(reader, limit);
  const actual = await server.side.history(reader, Math.max(limit, 1));
  langGraph.places = [...idsOf(expected.slice(0, fresh)), ...langGraph.places];
  server.places = [...idsOf(actual.slice(0, fresh)), ...server.places];
  expectSame(
    isWhole ? "the whole history" : "the newest states of the history",
    withParents(expected, langGraph.places),
    withParents(actual, server.places),
  );
  // Nothing came between the new states and the known ones.
  if (formerNewest !== undefined) expectSame("the order of the history", formerNewest, actual[fresh]?.id);
};

const withoutModulo = (operation: Operation, { length }: readonly string[]): Operation =>
  "at" in operation && operation.at !== undefined && length > 0
    ? { ...operation, at: operation.at % length }
    : operation;

const sorted = (values: readonly unknown[]): string[] => values.map((value) => JSON.stringify(value)).sort();

/** Whether a thread is idle or interrupted is not compared: the stream of the run decides, not the state. */
const compareRecord = async (
  reader: number,
  outcome: Outcome,
  head: View,
  { side }: Thread<LangGraphSide>,
  server: Thread<ServerSide>,
): Promise<void> => {
  const hasFailed = outcome.kind === "failed";
  const [newest] = side.hasCommand() ? [] : await side.history(reader, 1);
  const expected = {
    hasFailed,
    values: newest?.view.values,
    interrupts: hasFailed ? [] : sorted(head.interrupts),
  };
  const { status, values, interrupts } = await server.side.record(reader);
  const actual = {
    hasFailed: status === "error",
    values: newest === undefined ? undefined : values,
    interrupts: sorted(interrupts),
  };
  expectSame("the record of the thread", expected, actual);
};

/** If one of several tasks fails, LangGraph stops subgraphs wherever they are. */
const isCutShort = async ({ graph }: History, side: Side): Promise<boolean> =>
  graph === "nest" && (await side.head(0)).view.tasks.length > 1;

/**
 * Performs a history with LangGraph alone and on the servers; compares both after each operation. The history ends at a state that LangGraph
 * does not define.
 */
export const compareHistory = async (history: History, send: Send): Promise<Difference | undefined> => {
  const langGraph: Thread<LangGraphSide> = { side: createLangGraphSide(), places: [] };
  const server: Thread<ServerSide> = { side: createServerSide(send), places: [] };
  const operations: Operation[] = [];
  let after = -1;
  let pruned = false;
  try {
    expectSameOutcome("the creation", await langGraph.side.begin(history), await server.side.begin(history));
    await compareNewest(0, langGraph, server, { isWhole: true, pruned });
    for (const operation of history.operations) {
      after += 1;
      operations.push(withoutModulo(operation, langGraph.places));
      const { reader, look } = operation;
      const expected = await langGraph.side.perform(operation, langGraph.places);
      const actual = await server.side.perform(operation, server.places);
      expectSameOutcome("the answer", expected, actual);
      if (expected.kind === "skipped") continue;
      if (expected.kind === "failed" && REFUSED.test(expected.message)) return undefined;
      if (expected.kind === "failed" && (await isCutShort(history, langGraph.side))) return undefined;
      if (operation.do === "prune") {
        pruned = true;
        langGraph.places.splice(1);
        server.places.splice(1);
      }
      await compareNewest(reader, langGraph, server, {
        isWhole: after === history.operations.length - 1,
        pruned,
      });
      const head = (await langGraph.side.head(reader)).view;
      expectSame("the head", head, (await server.side.head(reader)).view);
      const changesRecord =
        operation.do !== "prune" && operation.do !== "copy" && expected.kind !== "refused";
      if (changesRecord) await compareRecord(reader, expected, head, langGraph, server);
      const earlier = look % Math.max(langGraph.places.length, 1);
      const [one, other] = [langGraph.places[earlier], server.places[earlier]];
      if (one !== undefined && other !== undefined)
        expectSame(
          "an earlier state",
          (await langGraph.side.at(reader, one)).view,
          (await server.side.at(reader, other)).view,
        );
    }
    if (history.graph === "nest" && !pruned) {
      const inside = await Promise.all(
        [langGraph, server].map(({ side }) => side.history(0, EVERYTHING, KEEPER)),
      );
      const [expected = [], actual = []] = inside;
      expectSame(
        "the history of the subgraph",
        withParents(expected, idsOf(expected)),
        withParents(actual, idsOf(actual)),
      );
    }
    expectSame(
      "the threads that were copied",
      (await langGraph.side.copied(1)).map(({ view }) => view),
      (await server.side.copied(1)).map(({ view }) => view),
    );
    return undefined;
  } catch (error) {
    if (error instanceof UnreadableError) return undefined;
    if (error instanceof Differs) return { after, operations, what: error.what, ...error.place };
    if (error instanceof ServerFault)
      return {
        after,
        operations,
        what: "a fault of the server",
        path: "",
        expected: undefined,
        actual: error.message,
      };
    throw error;
  } finally {
    await server.side.end();
  }
};
