/** Takes out of events what differs from run to run, and from a server's run to LangGraph's alone. */
import type { Told } from "./alone.ts";

/** Of metadata: ids of the run and its server, the assistant's metadata, and what LangGraph copies of a configuration. */
const OF_RUN = new Set([
  "thread_id",
  "run_id",
  "graph_id",
  "assistant_id",
  "run_attempt",
  "created_by",
  "checkpoint_ns",
  "steps",
]);
/** Of checkpoints: which checkpoint it is, and the configuration of the run. */
const PLACES = new Set(["config", "parent_config", "checkpoint", "parent_checkpoint"]);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const without = (value: object, keys: ReadonlySet<string>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !keys.has(key))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

const plain = (value: unknown, key?: string): unknown => {
  if (Array.isArray(value)) return value.map((element) => plain(element));
  if (!isObject(value)) return key === "timestamp" ? "a time" : value;
  const kept = without(value, key === "metadata" ? OF_RUN : new Set());
  return Object.fromEntries(Object.entries(kept).map(([name, inner]) => [name, plain(inner, name)]));
};

const ofCheckpoint = (payload: unknown): unknown => {
  if (!isObject(payload) || !Array.isArray(payload["tasks"])) return payload;
  const tasks = payload["tasks"].map((task: unknown) => (isObject(task) ? without(task, PLACES) : task));
  return { ...without(payload, PLACES), tasks };
};

const shape = ([event, data]: Told): Told => {
  const [mode = ""] = event.split("|");
  if (mode === "checkpoints") return [event, plain(ofCheckpoint(data))];
  if (mode === "debug" && isObject(data))
    return [event, plain({ ...data, payload: ofCheckpoint(data["payload"]) })];
  if (mode === "messages" && Array.isArray(data))
    return [event, [plain(data[0]), plain(data[1], "metadata")]];
  return [event, plain(data)];
};

const ID =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-f-])[0-9a-f]{32}(?![0-9a-f-])/g;

/** Each line is an event. Ids are numbered in the order of their appearance, so the same id stays the same. */
export const normal = (told: readonly Told[]): string[] => {
  const numbers = new Map<string, number>();
  return told.map((event) =>
    JSON.stringify(shape(event)).replaceAll(ID, (id) => {
      const number = numbers.get(id) ?? numbers.size + 1;
      numbers.set(id, number);
      return `#${number}`;
    }),
  );
};
