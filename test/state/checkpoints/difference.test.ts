import { AIMessage, HumanMessage } from "@langchain/core/messages";
import {
  MemorySaver,
  uuid6,
  type BaseCheckpointSaver,
  type Checkpoint,
  type CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

/** Creates a new element, so that two savers never share one. */
type Maker = () => unknown;
type Edit =
  | { kind: "append"; makers: Maker[] }
  | { kind: "insert"; at: number; makers: Maker[] }
  | { kind: "remove"; at: number; count: number }
  | { kind: "replace"; at: number; maker: Maker }
  | { kind: "move"; from: number; to: number }
  | { kind: "reverse" }
  | { kind: "repeat"; at: number }
  | { kind: "change"; at: number; text: string }
  | { kind: "appendMany"; count: number }
  | { kind: "replaceAlike"; at: number; part: unknown }
  | { kind: "clear" };

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom("", "\u0000", "\ud800", "é🙂"),
);
/** Without values that the in-memory saver itself loses: -0 and keys named __proto__. */
const jsonValue = fc
  .jsonValue()
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll("__proto__", "proto")) as unknown);
const maker: fc.Arbitrary<Maker> = fc.oneof(
  fc.tuple(text, fc.uuid()).map(
    ([content, id]) =>
      () =>
        new HumanMessage({ content, id }),
  ),
  fc.tuple(text, fc.uuid(), jsonValue).map(
    ([content, id, args]) =>
      () =>
        new AIMessage({
          content,
          id,
          tool_calls: [{ id, name: "tool", args: { args: structuredClone(args) } }],
        }),
  ),
  jsonValue.map((value) => () => structuredClone(value)),
  text.map((value) => () => value),
);
const position = fc.nat(200);
const makers = fc.array(maker, { minLength: 1, maxLength: 12 });
const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 4, arbitrary: makers.map((makers): Edit => ({ kind: "append", makers })) },
  fc.tuple(position, makers).map(([at, makers]): Edit => ({ kind: "insert", at, makers })),
  fc
    .tuple(position, fc.integer({ min: 1, max: 5 }))
    .map(([at, count]): Edit => ({ kind: "remove", at, count })),
  fc.tuple(position, maker).map(([at, maker]): Edit => ({ kind: "replace", at, maker })),
  fc.tuple(position, position).map(([from, to]): Edit => ({ kind: "move", from, to })),
  fc.constant<Edit>({ kind: "reverse" }),
  position.map((at): Edit => ({ kind: "repeat", at })),
  fc.integer({ min: 60, max: 150 }).map((count): Edit => ({ kind: "appendMany", count })),
  fc
    .tuple(position, fc.constantFrom<unknown>({}, [], null, "", 0, 1, { a: 1 }, [1], { a: [] }, { a: {} }))
    .map(([at, part]): Edit => ({ kind: "replaceAlike", at, part })),
  fc.tuple(position, text).map(([at, text]): Edit => ({ kind: "change", at, text })),
  fc.constant<Edit>({ kind: "clear" }),
);

/** Another object that differs only below its top level, or only in the kind of an empty part. */
const alike = (element: unknown, part: unknown): unknown => {
  if (element instanceof AIMessage) {
    const { content, id } = element;
    return new AIMessage({
      content,
      ...(id === undefined ? {} : { id }),
      tool_calls: [{ id: "c", name: "tool", args: { part } }],
    });
  }
  if (element instanceof HumanMessage || typeof element !== "object" || element === null) return element;
  return Array.isArray(element) ? element.map(() => part) : { ...element, deep: structuredClone(part) };
};

/** What a node changes in place is noticed in a list's last elements (decision 003). */
const NOTICED_IN_PLACE = 60;

/** Applies an edit to a list and the objects in it, like a user's code. */
const apply = (list: unknown[], edit: Edit): unknown[] => {
  const index = (at: number): number => (list.length === 0 ? 0 : at % list.length);
  switch (edit.kind) {
    case "append":
      return [...list, ...edit.makers.map((make) => make())];
    case "insert":
      return list.toSpliced(index(edit.at), 0, ...edit.makers.map((make) => make()));
    case "remove":
      return list.toSpliced(index(edit.at), edit.count);
    case "replace":
      return list.length === 0 ? list : list.with(index(edit.at), edit.maker());
    case "move": {
      const moved = [...list];
      moved.splice(index(edit.to), 0, ...moved.splice(index(edit.from), 1));
      return moved;
    }
    case "reverse":
      return list.toReversed();
    case "repeat":
      return list.length === 0 ? list : [...list, list[index(edit.at)]];
    case "clear":
      return [];
    case "appendMany":
      return [...list, ...Array.from({ length: edit.count }, (_, number) => ({ number, deep: { x: 0 } }))];
    case "replaceAlike":
      return list.length === 0 ? list : list.with(index(edit.at), alike(list[index(edit.at)], edit.part));
    case "change": {
      const element =
        list[list.length - 1 - (edit.at % Math.min(Math.max(list.length, 1), NOTICED_IN_PLACE))];
      if (element instanceof AIMessage && element.tool_calls?.[0])
        element.tool_calls[0].args.changed = edit.text;
      else if (element instanceof HumanMessage) element.content = element.lc_kwargs.content = edit.text;
      else if (typeof element === "object" && element !== null && !Array.isArray(element)) {
        (element as Record<string, unknown>).changed = edit.text;
      } else if (Array.isArray(element)) element.push(edit.text);
      return [...list];
    }
  }
};

interface Step {
  /** A subgraph begins with the elements that its parent has. */
  checkpointNs: string;
  /** The parent among the checkpoints so far. */
  parent: number;
  /** Whether the parent is read again, or the last written values are edited (only if they are the parent). */
  reads: boolean;
  writer: "attempt" | "anybody" | "another process";
  edits: Edit[];
  /** Also replaces the other channel. */
  other: unknown;
}

const step: fc.Arbitrary<Step> = fc.record({
  checkpointNs: fc.constantFrom("", "", "child"),
  parent: fc.oneof({ weight: 4, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(20) }),
  reads: fc.boolean(),
  writer: fc.constantFrom("attempt" as const, "anybody" as const, "another process" as const),
  edits: fc.array(edit, { maxLength: 3 }),
  other: fc.oneof(fc.constant(undefined), jsonValue),
});

/** Without the field that only this saver has: the run that wrote it. */
const plain = (tuple: CheckpointTuple | undefined): unknown => {
  if (tuple === undefined) return undefined;
  const { run_id: _, ...metadata } = tuple.metadata as { run_id?: string };
  return {
    ...tuple,
    metadata,
    config: { configurable: { ...tuple.config.configurable } },
    pendingWrites: [],
  };
};

describe("state stored as differences", () => {
  it("equals the in-memory saver's after any edits and forks by any writers", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const { threadId, runId, attempt } = await aRunningRun(opened.database);
        const memory = new MemorySaver();
        const another = opened.anotherProcess();
        const attemptSaver = opened.storage.saverForAttempt({ threadId, runId, attempt });
        const savers: Record<Step["writer"], BaseCheckpointSaver> = {
          attempt: attemptSaver,
          anybody: opened.storage.saver,
          "another process": another.saver,
        };
        const idsOf: Record<string, string[]> = { "": [], child: [] };
        let last: { ours: Checkpoint; theirs: Checkpoint; writer: Step["writer"]; id: string } | undefined;
        for (const [
          number,
          { checkpointNs, parent: wanted, reads, writer, edits, other },
        ] of steps.entries()) {
          const ids = idsOf[checkpointNs]!;
          const parent = wanted < 0 ? ids.at(-1) : ids[wanted % Math.max(ids.length, 1)];
          const config = {
            configurable: { thread_id: threadId, checkpoint_ns: checkpointNs, checkpoint_id: parent },
          };
          if (last?.writer === "attempt" && writer !== "attempt") await attemptSaver.flush();
          let before: Pick<NonNullable<typeof last>, "ours" | "theirs"> | undefined;
          if (!reads && last !== undefined && last.id === parent && last.writer === writer) before = last;
          else if (parent !== undefined) {
            const [ours, theirs] = [await savers[writer].getTuple(config), await memory.getTuple(config)];
            expect(plain(ours)).toEqual(plain(theirs));
            before = { ours: ours!.checkpoint, theirs: theirs!.checkpoint };
          }
          // A subgraph's first state is made of the elements that its parent holds.
          before ??= last?.writer === writer ? last : undefined;
          const id = uuid6(number);
          const next = (checkpoint: Checkpoint | undefined): Checkpoint => {
            let list = (checkpoint?.channel_values.list ?? []) as unknown[];
            for (const edit of edits) list = apply(list, edit);
            const versions = { ...checkpoint?.channel_versions };
            const values = { ...checkpoint?.channel_values };
            if (edits.length > 0) {
              values.list = list;
              versions.list = number + 1;
            }
            if (other !== undefined) {
              values.other = structuredClone(other);
              versions.other = number + 1;
            }
            return {
              v: 4,
              id,
              ts: "2024-01-01T00:00:00.000Z",
              channel_values: values,
              channel_versions: versions,
              versions_seen: { node: { list: number } },
            };
          };
          const [ours, theirs] = [next(before?.ours), next(before?.theirs)];
          const metadata = { source: "loop" as const, step: number, parents: {} };
          const newVersions = Object.fromEntries(
            Object.entries(ours.channel_versions).filter(
              ([, version]) => parent === undefined || version === number + 1,
            ),
          );
          await savers[writer].put(config, ours, metadata, newVersions);
          await memory.put(config, theirs, metadata);
          ids.push(id);
          last = { ours, theirs, writer, id };
        }
        await attemptSaver.flush();
        for (const checkpointNs of Object.keys(idsOf)) {
          const configurable = { thread_id: threadId, checkpoint_ns: checkpointNs };
          const theirs: unknown[] = [];
          for await (const tuple of memory.list({ configurable })) theirs.push(plain(tuple));
          for (const saver of [opened.anotherProcess().saver, another.saver, opened.storage.saver]) {
            const ours: unknown[] = [];
            for await (const tuple of saver.list({ configurable })) ours.push(plain(tuple));
            expect(ours).toEqual(theirs);
          }
        }
      }),
      { numRuns: 60, endOnFailure: true },
    );
  });
});
