import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FilterError, readFilter } from "../../src/access/auth/filters.ts";
import { grantVisibility, type Visibility, whereVisible } from "../../src/access/visibility.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { queriesOver } from "../../src/platform/database/queries.ts";
import { statement } from "../../src/platform/database/statement.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { freshDatabase, type FreshDatabase } from "../helpers/database.ts";
import { openTestDatabase } from "../helpers/test-database.ts";

/** Filters returned by handlers, applied to all kinds of metadata in both kinds of statements. */

const RECORDS: Readonly<Record<string, object>> = {
  empty: {},
  alice: { owner: "alice", team: "blue" },
  bob: { owner: "bob", team: "blue" },
  zero: { owner: 0 },
  no: { owner: false },
  blank: { owner: "" },
  none: { owner: null },
  list: { owner: ["alice"] },
  members: { members: ["alice", "bob", 0, null] },
  others: { members: ["carol"] },
  empties: { members: [] },
  box: { place: { room: 1 } },
  larger: { place: { room: 1, floor: 2 } },
  lists: { path: [1, 2] },
  longer: { path: [1, 2, 3] },
  named: { constructor: "alice", ["__proto__"]: "alice", "a'b\"c": "alice" },
};
const names = new Map<string, string>();

let fresh: FreshDatabase;
let database: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString, { schema: "threadloom", poolSize: 2 });
  for (const [name, metadata] of Object.entries(RECORDS)) {
    const id = newId();
    names.set(id, name);
    // In a literal `__proto__` sets the prototype; in brackets it is an own property.
    await database.query("insert into threadloom.threads (thread_id, metadata) values ($1, $2)", [
      id,
      JSON.stringify(metadata),
    ]);
  }
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

const visibilityOf = (filter: unknown): Visibility<"threads"> =>
  grantVisibility("threads", readFilter(filter).condition);
const named = (rows: { thread_id: string }[]): string[] =>
  rows.map(({ thread_id }) => names.get(thread_id) ?? "").toSorted();
const VISIBLE = statement(
  { visible: "fragment" },
  (sql) => `select thread_id from threadloom.threads where ${sql.visible}`,
);
const raw = async (filter: unknown): Promise<string[]> => {
  return named(await VISIBLE.query(database, { visible: visibilityOf(filter).on("metadata") }));
};
const built = async (filter: unknown): Promise<string[]> =>
  named(
    await queriesOver(database)
      .selectFrom("threads")
      .select("thread_id")
      .where(whereVisible(visibilityOf(filter), "metadata"))
      .execute(),
  );

const EVERYTHING = Object.keys(RECORDS);
const FOUND: readonly (readonly [filter: unknown, found: readonly string[]])[] = [
  [{}, EVERYTHING],
  [{ owner: "alice" }, ["alice"]],
  [{ owner: { $eq: "alice" } }, ["alice"]],
  [{ owner: "nobody" }, []],
  [{ owner: 0 }, ["zero"]],
  [{ owner: { $eq: 0 } }, ["zero"]],
  [{ owner: false }, ["no"]],
  [{ owner: { $eq: false } }, ["no"]],
  [{ owner: "" }, ["blank"]],
  [{ owner: { $eq: "" } }, ["blank"]],
  [{ owner: null }, ["none"]],
  [{ owner: { $eq: null } }, ["none"]],
  [{ owner: ["alice"] }, ["list"]],
  [{ owner: { $contains: "alice" } }, ["list"]],
  [{ members: { $contains: "alice" } }, ["members"]],
  [{ members: { $contains: ["alice", "bob"] } }, ["members"]],
  [{ members: { $contains: ["alice", "carol"] } }, []],
  [{ members: { $contains: 0 } }, ["members"]],
  [{ members: { $contains: null } }, ["members"]],
  [{ members: { $contains: "" } }, []],
  [{ members: { $contains: [] } }, ["empties", "members", "others"]],
  [{ members: ["carol"] }, ["others"]],
  [{ members: [] }, ["empties"]],
  [{ place: { room: 1 } }, ["box"]],
  [{ path: [1, 2] }, ["lists"]],
  [{ path: { $eq: [1, 2, 3] } }, ["longer"]],
  [{ owner: "alice", team: "blue" }, ["alice"]],
  [{ owner: "alice", team: "red" }, []],
  [{ $or: [{ owner: "alice" }, { owner: 0 }] }, ["alice", "zero"]],
  [{ $or: [] }, []],
  [{ $and: [] }, EVERYTHING],
  [{ $and: [{ team: "blue" }, { owner: "bob" }] }, ["bob"]],
  [{ team: "blue", $or: [{ owner: "bob" }, { owner: "carol" }] }, ["bob"]],
  [
    { $or: [{ $and: [{ team: "blue" }, { owner: "bob" }] }, { members: { $contains: "carol" } }] },
    ["bob", "others"],
  ],
  [{ $or: [{ owner: "alice" }, {}] }, EVERYTHING],
  [{ members: { $contains: "alice", $eq: ["alice", "bob", 0, null] } }, ["members"]],
  [{ constructor: "alice" }, ["named"]],
  [JSON.parse('{"__proto__":"alice"}'), ["named"]],
  [{ "a'b\"c": "alice" }, ["named"]],
  [{ owner: "' or true --" }, []],
];

describe("a filter", () => {
  test.each(FOUND)("%j finds the same records in statements of both kinds", async (filter, found) => {
    expect(await raw(filter)).toEqual([...found].toSorted());
    expect(await built(filter)).toEqual([...found].toSorted());
  });

  const nested = (levels: number): object =>
    levels === 1 ? { owner: "alice" } : { $and: [nested(levels - 1)] };
  const terms = (many: number): object => ({
    $or: Array.from({ length: many - 1 }, (_, index) => ({ owner: String(index) })),
  });

  test("may have at most 8 levels and 200 terms", async () => {
    expect(await raw(nested(8))).toEqual(["alice"]);
    expect(await raw(terms(200))).toEqual([]);
    expect(() => readFilter(nested(9))).toThrow(FilterError);
    expect(() => readFilter(terms(201))).toThrow(FilterError);
  });

  test.each([
    ["a list", []],
    ["an instance of something", new Map([["owner", "alice"]])],
    ["a key that is undefined, as a field that the user does not have", { owner: undefined }],
    ["an $eq that is undefined", { owner: { $eq: undefined } }],
    ["a function", { owner: () => true }],
    ["a number that is none", { owner: Number.NaN }],
    ["a date", { owner: new Date(0) }],
    ["an unknown operator", { owner: { $ne: "alice" } }],
    ["an operator and a key beside it", { owner: { $eq: "alice", other: 1 } }],
    ["an operator on top", { $not: [{ owner: "alice" }] }],
    ["an $or that is no list", { $or: { owner: "alice" } }],
    ["an $or of texts instead of filters", { $or: ["alice"] }],
    ["a $contains of objects", { members: { $contains: [{}] } }],
    ["a $contains of lists", { members: { $contains: [["alice"]] } }],
    ["a NUL", { owner: "a\0b" }],
    ["half a surrogate pair", { owner: "\ud800" }],
    ["a value of more characters than metadata have", { owner: "x".repeat(1_000_001) }],
  ])("is refused if it is %s", (_name, filter) => {
    expect(() => readFilter(filter)).toThrow(FilterError);
  });
});
