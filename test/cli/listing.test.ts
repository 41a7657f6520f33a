import { expect, test } from "vitest";
import { readListed } from "../../src/cli/remote/listing.ts";
import type { RemoteServer } from "../../src/cli/remote/server.ts";
import type { JsonObject } from "../../src/platform/lib/json.ts";

interface Listed {
  id: string;
  at: number;
}

/** Searches these records in pages of at most two, and records each request. */
const searched = (records: readonly Listed[], nextOf: (end: number) => number = (end) => end) => {
  const asked: JsonObject[] = [];
  const server: Pick<RemoteServer, "search"> = {
    search: (_path, body) => {
      asked.push(body);
      const { offset, limit } = body as { offset: number; limit: number };
      const end = offset + Math.min(2, limit);
      return Promise.resolve({
        items: records.slice(offset, end).map((record) => ({ ...record })),
        next: end < records.length ? nextOf(end) : undefined,
      });
    },
  };
  return { server, asked };
};

const list = (server: Pick<RemoteServer, "search">, limit: number, since = 0) =>
  readListed<Listed>(server, {
    path: "/records/search",
    body: { sort_order: "desc" },
    limit,
    parse: (items) => items as unknown as Listed[],
    idOf: ({ id }) => id,
    isPast: ({ at }) => at < since,
  });

const RECORDS = ["a", "b", "c", "d", "e"].map((id, place) => ({ id, at: 9 - place }));
const ids = (found: readonly Listed[]): string => found.map(({ id }) => id).join("");

test("a list continues where a page of the server ended early, up to its limit", async () => {
  const { server, asked } = searched(RECORDS);
  expect(ids(await list(server, 3))).toBe("abc");
  expect(asked).toEqual([
    { sort_order: "desc", limit: 3, offset: 0 },
    { sort_order: "desc", limit: 1, offset: 2 },
  ]);
  expect(ids(await list(server, 100))).toBe("abcde");
});

test("a list that begins at a time requests nothing after the first earlier record", async () => {
  const { server, asked } = searched(RECORDS);
  expect(ids(await list(server, 100, 8))).toBe("ab");
  expect(asked.length).toBe(2);
});

test("a record that moved to the next page meanwhile is listed once", async () => {
  const [a, b, c] = RECORDS as [Listed, Listed, Listed];
  expect(ids(await list(searched([a, b, b, c]).server, 100))).toBe("abc");
});

test("a list ends if a server repeats the same next page", async () => {
  const { server, asked } = searched(RECORDS, () => 0);
  expect(ids(await list(server, 100))).toBe("ab");
  expect(asked.length).toBe(1);
});
