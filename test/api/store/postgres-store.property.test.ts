import { InMemoryStore, type Item } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore, type OpenStore } from "./open-store.ts";

/**
 * Labels of one letter: LangGraph's in-memory store joins labels with colons and compares prefixes of that text, so it takes ["ab"] for a
 * child of ["a"]. That one fault should not show.
 */
const label = fc.constantFrom("a", "b", "c");
const namespace = fc.array(label, { minLength: 1, maxLength: 4 });
const key = fc.constantFrom("k", "l", "K", "", "a b", "é", "%", "x'y");
const field = fc.constantFrom("f", "g'$");
const scalar = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    1,
    2,
    1.5,
    "",
    "1",
    "1.5",
    " 2 ",
    "x",
    "2024-01-01",
    "1e3",
  ),
  fc.integer({ min: -3, max: 3 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0")),
);
/** Few numbers in several spellings, so that comparisons hit their borders. */
const near = fc.constantFrom<unknown>(0, 1, 2, "1", " 2 ", true, null);
const value = fc.dictionary(field, fc.oneof(near, scalar), { maxKeys: 3, noNullPrototype: true });
const operators = fc.oneof(
  fc.record({ $eq: scalar }),
  fc.record({ $ne: scalar }),
  fc.record({ $in: fc.array(scalar, { maxLength: 4 }) }),
  fc.record({ $nin: fc.array(scalar, { maxLength: 4 }) }),
  fc.record({ $lte: near }),
  fc.record({ $gt: near, $lte: scalar }, { requiredKeys: [] }),
  fc.record({ $gte: near, $lt: near }, { requiredKeys: [] }),
);
const filter = fc.option(
  fc.dictionary(field, fc.oneof(scalar, operators, fc.constant(undefined)), {
    maxKeys: 2,
    noNullPrototype: true,
  }),
  { nil: undefined },
);
const pattern = fc.array(fc.oneof(label, fc.constant("*")), { maxLength: 3 });

const write = fc.oneof(
  { weight: 3, arbitrary: fc.record({ namespace, key, value: value as fc.Arbitrary<unknown> }) },
  { weight: 1, arbitrary: fc.record({ namespace, key, value: fc.constant<unknown>(null) }) },
);
/** Mostly short ones, so that searches find something. */
const prefix = fc.oneof(fc.constant<string[]>([]), fc.array(label, { maxLength: 3 }));
const read = fc.oneof(
  fc.record({ kind: fc.constant("get" as const), namespace, key }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("search" as const), prefix, filter }) },
  fc.record({
    kind: fc.constant("list" as const),
    matchConditions: fc.array(
      fc.record({ matchType: fc.constantFrom("prefix" as const, "suffix" as const), path: pattern }),
      { maxLength: 2 },
    ),
    maxDepth: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    limit: fc.integer({ min: 0, max: 12 }),
    offset: fc.integer({ min: 0, max: 4 }),
  }),
);
type Write = { namespace: string[]; key: string; value: Record<string, unknown> | null };

const MANY = 1_000;
const plain = (item: Item | null) =>
  item === null
    ? null
    : { namespace: item.namespace, key: item.key, value: JSON.parse(JSON.stringify(item.value)) };
const inOrder = (items: Item[]) =>
  items.map((item) => JSON.stringify(Object.values(plain(item)!).slice(0, 2)) + canonical(item.value)).sort();
const canonical = (object: object) =>
  JSON.stringify(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));

/** LangGraph's store keeps listing namespaces whose items are all deleted; a refilled one does not. */
const withoutEmptyNamespaces = async (memory: InMemoryStore): Promise<InMemoryStore> => {
  const refilled = new InMemoryStore();
  for (const item of await memory.search([], { limit: MANY })) {
    await refilled.put(item.namespace, item.key, item.value);
  }
  return refilled;
};

describe("the store, compared with LangGraph's in-memory store,", () => {
  let open: OpenStore;
  beforeAll(async () => {
    open = await openStore();
  });
  afterAll(async () => {
    await open.close();
  });

  it("returns the same for any puts, deletes, gets, searches and listings", async () => {
    const batches = fc.array(fc.array(write, { maxLength: 8 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(batches, fc.array(read, { minLength: 1, maxLength: 8 }), async (written, reads) => {
        await open.empty();
        const memory = new InMemoryStore();
        for (const batch of written as Write[][]) {
          // LangGraph's store keeps references, so a copy prevents that a later put changes an earlier one.
          await memory.batch(structuredClone(batch));
          await open.store.batch(batch);
        }
        const listed = await withoutEmptyNamespaces(memory);
        for (const one of reads) {
          if (one.kind === "get") {
            expect(plain(await open.store.get(one.namespace, one.key))).toEqual(
              plain(await memory.get(one.namespace, one.key)),
            );
          } else if (one.kind === "search") {
            const options = { filter: one.filter, limit: MANY };
            const found = await open.store.search(one.prefix, options);
            expect(inOrder(found)).toEqual(inOrder(await memory.search(one.prefix, options)));
            const page = await open.store.search(one.prefix, { ...options, limit: 2, offset: 1 });
            expect(page).toEqual(found.slice(1, 3));
          } else {
            const { kind: _kind, ...operation } = one;
            expect(await open.store.batch([operation])).toEqual(await listed.batch([operation]));
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it("returns the same for reads and writes mixed in one batch", async () => {
    const operation = fc.oneof(write, fc.record({ namespace, key }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(operation, { maxLength: 10 }), { maxLength: 3 }),
        async (batches) => {
          await open.empty();
          const memory = new InMemoryStore();
          for (const batch of batches as Write[][]) {
            const expected: unknown[] = [];
            // A batch reads before it writes. Its reads are sent alone, because LangGraph's store returns the objects that the batch's
            // writes then change.
            for (const operation of batch) {
              const [item] = "value" in operation ? [] : ((await memory.batch([operation])) as unknown[]);
              expected.push(plain((item ?? null) as Item | null));
            }
            await memory.batch(structuredClone(batch));
            const given = (await open.store.batch(batch)) as unknown[];
            expect(given.map((item) => plain((item ?? null) as Item | null))).toEqual(expected);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
