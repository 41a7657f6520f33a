import type { Difference } from "./compare.ts";
import type { History } from "./operations.ts";

export interface Failure {
  history: History;
  difference: Difference;
}

/** Copies of a JSON value with one part less: an element, a field, or a smaller number. */
function* simpler(value: unknown): Generator<unknown> {
  if (Array.isArray(value)) {
    for (let index = value.length - 1; index >= 0; index -= 1) yield value.toSpliced(index, 1);
    for (const [index, item] of value.entries())
      for (const less of simpler(item)) if (keepsNeeded(item, less)) yield value.with(index, less);
  } else if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value);
    for (const [key] of fields) yield Object.fromEntries(fields.filter(([other]) => other !== key));
    for (const [key, item] of fields)
      for (const less of simpler(item)) if (keepsNeeded(item, less)) yield { ...value, [key]: less };
  } else if (typeof value === "number" && value > 0) {
    yield 0;
    if (value > 2) yield Math.floor(value / 2);
  }
}

/** Without them, an operation or a message means nothing, or gets a random id. */
const NEEDED = new Set([
  ...["do", "server", "reader", "look", "ids", "count", "answers", "subgraph", "values"],
  ...["act", "edit", "edits", "$odd", "number", "role", "content", "id"],
]);
const keepsNeeded = (from: unknown, to: unknown): boolean => {
  if (typeof from !== "object" || from === null || typeof to !== "object" || to === null) return true;
  if (Array.isArray(from) || Array.isArray(to)) return true;
  const hasAnswers = !("answers" in to) || (to.answers as unknown[]).length > 0;
  return hasAnswers && Object.keys(from).every((key) => !NEEDED.has(key) || key in to);
};

function* simplerOperations({ operations, ...others }: History): Generator<History> {
  for (const [index, operation] of operations.entries())
    for (const less of simpler(operation))
      if (keepsNeeded(operation, less))
        yield { ...others, operations: operations.with(index, less as History["operations"][number]) };
}

function* fewerOperations({ operations, ...others }: History): Generator<History> {
  for (let size = Math.floor(operations.length / 2); size >= 1; size = Math.floor(size / 2))
    for (let from = operations.length - size; from >= 0; from -= size)
      yield { ...others, operations: operations.toSpliced(from, size) };
}

function* smaller(history: History): Generator<History> {
  yield* fewerOperations(history);
  if (history.supersteps.length > 0) {
    yield { ...history, supersteps: [] };
    for (const index of history.supersteps.keys())
      yield { ...history, supersteps: history.supersteps.toSpliced(index, 1) };
  }
  yield* simplerOperations(history);
}

/** Takes parts of a history away as long as it differs in the same respect. */
export const shrink = async (
  failure: Failure,
  run: (history: History) => Promise<Difference | undefined>,
  isOver: () => boolean,
): Promise<Failure> => {
  const { operations } = failure.difference;
  let smallest: Failure = { ...failure, history: { ...failure.history, operations } };
  for (let found = true; found;) {
    found = false;
    for (const history of smaller(smallest.history)) {
      if (isOver()) return smallest;
      // A part that is missing may confuse LangGraph itself.
      const difference = await run(history).catch(() => undefined);
      if (difference?.what !== smallest.difference.what) continue;
      smallest = { history, difference };
      found = true;
      break;
    }
  }
  return smallest;
};
