import type { History, Operation } from "./operations.ts";
import type { Seen } from "./views.ts";

/** How an operation ended. A refusal is an error of the caller, which changes nothing. */
export type Outcome =
  | { kind: "values"; values: unknown; interrupts: unknown[] }
  | { kind: "failed"; message: string }
  | { kind: "refused"; why: string }
  /** A run that had nothing to do. LangGraph then returns nothing; the server answers the values of the thread. */
  | { kind: "nothing" }
  | { kind: "done" }
  /** It does not suit the state, e.g. an answer without a question. */
  | { kind: "skipped" };

/** LangGraph alone, or two servers: what performs a history and shows the states of its thread. */
export interface Side {
  begin(history: History): Promise<Outcome>;
  /** `places`: the ids of the comparable checkpoints, the newest first. */
  perform(operation: Operation, places: readonly string[]): Promise<Outcome>;
  head(reader: number): Promise<Seen>;
  at(reader: number, id: string): Promise<Seen>;
  /** The newest first, `limit` at most. */
  history(reader: number, limit: number, namespace?: string): Promise<Seen[]>;
  /** The heads of the threads from which the thread was copied. */
  copied(reader: number): Promise<Seen[]>;
  end(): Promise<void>;
}

export const placeIn = (places: readonly string[], at: number | undefined): string | undefined =>
  at === undefined ? undefined : places[at % Math.max(places.length, 1)];

/** The thread's namespace of the subgraph with its own memory. */
export const KEEPER = "keeper";

/** The answers to the first questions, by their ids. */
export const answersById = (ids: readonly string[], count: number, answers: readonly unknown[]) =>
  Object.fromEntries(ids.slice(0, count).map((id, index) => [id, answers[index % answers.length]]));
