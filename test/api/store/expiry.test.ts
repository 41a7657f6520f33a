import { ANONYMOUS } from "../../../src/access/caller.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createStoreService } from "../../../src/api/store/service.ts";
import { openStore, type OpenStore } from "./open-store.ts";
import { authorize } from "../../helpers/access.ts";

const item = { namespace: ["n"], key: "k", value: { a: 1 } };
const address = { namespace: ["n"], key: "k" };

describe("the time to live of store items", () => {
  let open: OpenStore;
  beforeAll(async () => {
    open = await openStore();
  });
  afterAll(async () => {
    await open.close();
  });
  beforeEach(async () => {
    await open.empty();
  });

  const search = async (refresh?: boolean) => {
    const { items } = await open.service.search(ANONYMOUS, {
      namespace_prefix: ["n"],
      filter: undefined,
      limit: 10,
      offset: 0,
      query: undefined,
      refresh_ttl: refresh,
    });
    return items;
  };
  const list = async () =>
    await open.service.listNamespaces(ANONYMOUS, {
      prefix: undefined,
      suffix: undefined,
      max_depth: undefined,
      limit: 10,
      offset: 0,
    });

  it("hides an expired item everywhere before any sweep", async () => {
    await open.service.put(ANONYMOUS, { ...item, ttl: 5 });
    expect(await list()).toEqual([["n"]]);
    await open.age(5.01);
    expect(await search()).toEqual([]);
    expect(await open.service.get(ANONYMOUS, { ...address, refresh_ttl: true })).toBeUndefined();
    expect(await list()).toEqual([]);
    expect(await open.store.get(["n"], "k")).toBeNull();
  });

  it("restarts with every read, unless the read disables that", async () => {
    await open.service.put(ANONYMOUS, { ...item, ttl: 5 });
    for (const read of [
      () => open.service.get(ANONYMOUS, { ...address, refresh_ttl: undefined }),
      () => search(),
      () => open.store.get(["n"], "k"),
      () => open.store.search(["n"]),
    ]) {
      await open.age(4);
      expect([await read()].flat()).toMatchObject([{ key: "k" }]);
    }
    await open.age(3);
    await open.service.get(ANONYMOUS, { ...address, refresh_ttl: false });
    await search(false);
    await open.age(3);
    expect(await open.store.get(["n"], "k")).toBeNull();
  });

  it("does not restart with a read if the server is configured so, unless the read enables it", async () => {
    const service = createStoreService({
      repository: open.repository,
      authorize,
      items: open.items,
      expiry: { defaultMinutes: 10, refreshOnRead: false },
    });
    await service.put(ANONYMOUS, item);
    await open.age(9);
    await service.get(ANONYMOUS, { ...address, refresh_ttl: undefined });
    await open.age(2);
    expect(await service.get(ANONYMOUS, { ...address, refresh_ttl: undefined })).toBeUndefined();
    await service.put(ANONYMOUS, item);
    await open.age(9);
    await service.get(ANONYMOUS, { ...address, refresh_ttl: true });
    await open.age(9);
    expect(await service.get(ANONYMOUS, { ...address, refresh_ttl: undefined })).toBeDefined();
  });

  it("is the one of the last put: none, the server's default, or null for none in spite of the default", async () => {
    const service = createStoreService({
      repository: open.repository,
      authorize,
      items: open.items,
      expiry: { defaultMinutes: 10, refreshOnRead: true },
    });
    const minutes = async () =>
      await open.database.query("select ttl_minutes from threadloom.store_items").then(([row]) => row);
    await open.service.put(ANONYMOUS, { ...item, ttl: 5 });
    expect(await minutes()).toEqual({ ttl_minutes: 5 });
    await open.service.put(ANONYMOUS, item);
    expect(await minutes()).toEqual({ ttl_minutes: null });
    await service.put(ANONYMOUS, item);
    expect(await minutes()).toEqual({ ttl_minutes: 10 });
    await service.put(ANONYMOUS, { ...item, ttl: null });
    expect(await minutes()).toEqual({ ttl_minutes: null });
  });

  it("is returned with the item and the expiry time; an item without one has neither", async () => {
    await open.service.put(ANONYMOUS, { ...item, ttl: 5 });
    await open.service.put(ANONYMOUS, { ...item, key: "lasting" });
    const read = await open.service.get(ANONYMOUS, { ...address, refresh_ttl: false });
    const found = await search(false);
    expect(found.find(({ key }) => key === "k")).toEqual(read);
    expect(read).toMatchObject({ ttl: 5 });
    expect(Date.parse(read?.expires_at ?? "") - Date.parse(read?.updated_at ?? "")).toBe(5 * 60_000);
    const lasting = found.find(({ key }) => key === "lasting");
    expect(lasting).not.toHaveProperty("ttl");
    expect(lasting).not.toHaveProperty("expires_at");
  });

  it("ends an item completely: a put after that creates a new one", async () => {
    await open.service.put(ANONYMOUS, { ...item, ttl: 1 });
    await open.database.query("update threadloom.store_items set created_at = now() - interval '1 day'");
    await open.age(2);
    await open.service.put(ANONYMOUS, item);
    const again = await open.service.get(ANONYMOUS, { ...address, refresh_ttl: undefined });
    expect(again!.created_at).toBe(again!.updated_at);
  });

  it("lets the sweep remove only expired items, up to its limit", async () => {
    for (const key of ["a", "b", "c"]) await open.service.put(ANONYMOUS, { ...item, key, ttl: 5 });
    await open.age(6);
    await open.service.put(ANONYMOUS, { ...item, key: "young", ttl: 5 });
    await open.service.put(ANONYMOUS, { ...item, key: "lasting" });
    expect(await open.service.deleteExpired(ANONYMOUS, 2)).toBe(2);
    expect(await open.service.deleteExpired(ANONYMOUS, 2)).toBe(1);
    expect(await open.service.deleteExpired(ANONYMOUS, 2)).toBe(0);
    expect((await search()).map(({ key }) => key).sort()).toEqual(["lasting", "young"]);
  });
});
