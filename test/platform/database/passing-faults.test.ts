import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import {
  isCancelled,
  isContention,
  isPassing,
  mayHaveBeenCommitted,
  retryPassing,
} from "../../../src/platform/database/passing-faults.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let fresh: FreshDatabase;
let database: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString);
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

const failureOf = async (work: Promise<unknown>): Promise<unknown> => {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("Nothing failed.");
};
/** The error that `pg` creates from an error of the server. */
const refusalOf = (state: string): Promise<unknown> =>
  failureOf(database.query(`do $$ begin raise exception 'not now' using errcode = '${state}'; end $$`));
const systemError = (code: string, syscall: string): Error =>
  Object.assign(new Error(`${syscall} ${code}`), { code, syscall });

describe("a temporary error", () => {
  test.each([
    ["40001", false],
    ["40P01", false],
    ["55P03", false],
    ["57014", false],
    ["25006", false],
    ["57P03", false],
    ["53100", false],
    ["53200", false],
    ["53300", false],
    ["57P01", true],
    ["57P02", true],
    ["57P05", true],
    ["25P03", true],
    ["08006", true],
    ["08P01", true],
  ])("is %s of the server; whether the statement may have been committed: %s", async (state, uncertain) => {
    const error = await refusalOf(state);
    expect(isPassing(error)).toBe(true);
    expect(mayHaveBeenCommitted(error)).toBe(uncertain);
  });

  test("is a session that PostgreSQL 15 could not begin on a full disk, but no other internal error of the server", async () => {
    const refusal = (message: string): Promise<unknown> =>
      failureOf(
        database.query(`do $$ begin raise exception '${message}' using errcode = 'internal_error'; end $$`),
      );
    const full = await refusal("could not write init file");
    expect(isPassing(full)).toBe(true);
    expect(mayHaveBeenCommitted(full)).toBe(false);
    expect(isPassing(await refusal("cache lookup failed for relation 4711"))).toBe(false);
  });

  test.each([
    ["EAI_AGAIN", "getaddrinfo", false],
    ["ENOTFOUND", "getaddrinfo", false],
    ["ENETUNREACH", "connect", false],
    ["EHOSTUNREACH", "connect", false],
    ["ECONNREFUSED", "connect", false],
    ["ETIMEDOUT", "connect", false],
    ["ECONNRESET", "connect", false],
    ["ECONNRESET", "read", true],
    ["ETIMEDOUT", "read", true],
    ["EPIPE", "write", true],
  ])(
    "is %s of the system in %s; whether the statement may have been committed: %s",
    (code, syscall, uncertain) => {
      const error = systemError(code, syscall);
      expect(isPassing(error)).toBe(true);
      expect(mayHaveBeenCommitted(error)).toBe(uncertain);
    },
  );

  test("is a real error of `pg` and the system for an address without a listener", async () => {
    const away = (address: string): Promise<unknown> => {
      const other = openTestDatabase(address, { timeoutMs: 500 });
      return failureOf(other.query("select 1")).finally(() => other.close());
    };
    const refused = await away("postgres://nobody@127.0.0.1:1/none");
    const unknown = await away("postgres://nobody@no-such-host.invalid/none");
    const noSocket = await away("postgres://nobody@/none?host=/nowhere");
    for (const error of [refused, unknown, noSocket]) {
      expect(isPassing(error)).toBe(true);
      expect(mayHaveBeenCommitted(error)).toBe(false);
    }
  });

  test("is a statement cancelled by a time-out or by an administrator, which was not committed", async () => {
    const timedOut = await failureOf(
      database.transaction(
        (transaction) => transaction.query("select pg_sleep(60)"),
        "begin; set local statement_timeout = 10",
      ),
    );
    const stopped = await failureOf(database.query("select pg_cancel_backend(pg_backend_pid())"));
    for (const error of [timedOut, stopped]) {
      expect(isCancelled(error)).toBe(true);
      expect(isPassing(error)).toBe(true);
      expect(isContention(error)).toBe(true);
      expect(mayHaveBeenCommitted(error)).toBe(false);
    }
  });

  test("is a connection that dies during a statement, which may have been committed", async () => {
    const error = await failureOf(database.query("select pg_terminate_backend(pg_backend_pid())"));
    expect(isPassing(error)).toBe(true);
    expect(mayHaveBeenCommitted(error)).toBe(true);
  });
});

describe("a permanent error", () => {
  test.each(["23505", "22P02", "42601", "42P01", "28P01", "3D000", "XX000"])(
    "is %s of the server",
    async (state) => {
      const error = await refusalOf(state);
      expect(isPassing(error)).toBe(false);
      expect(mayHaveBeenCommitted(error)).toBe(false);
    },
  );

  test("is an error that comes from no database", () => {
    for (const error of [new Error("no"), new TypeError("no"), "ECONNREFUSED", undefined, { code: "40001" }])
      expect(isPassing(error)).toBe(false);
  });
});

test("a connection to a server that is no longer the primary is not used again", async () => {
  const pidOf = async (): Promise<number | undefined> =>
    (await database.query<{ pid: number }>("select pg_backend_pid() as pid"))[0]?.pid;
  const before = await pidOf();
  const error = await failureOf(
    database.transaction(async (transaction) => {
      await transaction.query("set transaction read only");
      await transaction.query("create table not_here (x int)");
    }),
  );
  expect(isPassing(error)).toBe(true);
  expect(await pidOf()).not.toBe(before);
});

describe("a retry", () => {
  const deadlock = () => Object.assign(new Error("deadlock detected"), { code: "40P01" });

  test("continues while the error is temporary, and reports from the second try on that it is not the first", async () => {
    const tries: boolean[] = [];
    const result = await retryPassing(async (isRetry) => {
      tries.push(isRetry);
      if (tries.length < 4) throw deadlock();
      return "done";
    });
    expect(result).toBe("done");
    expect(tries).toEqual([false, true, true, true]);
  });

  test("ends at once with a permanent error, or when its caller is gone", async () => {
    let tries = 0;
    const work = async (): Promise<never> => {
      tries += 1;
      throw tries === 2 ? new Error("ours") : deadlock();
    };
    await expect(retryPassing(work)).rejects.toThrow("ours");
    expect(tries).toBe(2);
    await expect(retryPassing(work, { isWanted: () => false })).rejects.toThrow("deadlock");
    expect(tries).toBe(3);
  });

  test("ends when its time is over, with the last error", async () => {
    await expect(retryPassing(async () => Promise.reject(deadlock()), { forMs: 60 })).rejects.toThrow(
      "deadlock",
    );
  });
});
