import { connect, createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase } from "../../../src/platform/database/database.ts";
import { searchAddressesOf, withSessionSettings } from "../../../src/platform/database/session-settings.ts";
import { startTestServer } from "../../helpers/app.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { query } from "../../helpers/query.ts";

/** A database whose sessions compile costly statements, which is PostgreSQL's default. */

const closers: (() => Promise<unknown>)[] = [];
let database: FreshDatabase;
beforeEach(async () => {
  database = await freshDatabase();
  closers.push(() => database.drop());
  const name = new URL(database.connectionString).pathname.slice(1);
  await query(database, `alter database ${name} set jit = on`);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const jitOf = async (connectionString: string): Promise<string | undefined> =>
  (await query<{ jit: string }>({ connectionString }, "show jit"))[0]?.jit;

test("a connection disables compilation at its start, beside the options of its address", async () => {
  expect(await jitOf(database.connectionString)).toBe("on");
  const url = new URL(await withSessionSettings(`${database.connectionString}?options=-c%20work_mem%3D5MB`));
  expect(await jitOf(url.href)).toBe("off");
  expect(await query({ connectionString: url.href }, "show work_mem")).toEqual([{ work_mem: "5MB" }]);
});

const PLANNING =
  "select current_setting('enable_seqscan') as whole, current_setting('enable_bitmapscan') as bitmaps";

test("statements are planned with indexes, and searches with any plan", async () => {
  const { logger } = listeningLogger();
  const opened = openDatabase({
    connectionString: await withSessionSettings(database.connectionString),
    poolSize: 1,
    applicationName: "threadloom test",
    preparedStatements: true,
    logger,
  });
  closers.push(() => opened.close());
  expect(await opened.query(PLANNING)).toEqual([{ whole: "off", bitmaps: "off" }]);
  expect(await opened.boundedRead(PLANNING)).toEqual([{ whole: "on", bitmaps: "on" }]);
  expect(await opened.query(PLANNING)).toEqual([{ whole: "off", bitmaps: "off" }]);
});

test("no connection of a server compiles statements", async () => {
  // Each session that reads the trap's table records its own setting.
  await query(
    database,
    `create table public.seen (jit text);
     create function public.note() returns trigger language plpgsql as $$
     begin insert into public.seen values (current_setting('jit')); return new; end $$;
     create trigger note after insert on threadloom.threads for each row execute function public.note();
     create trigger note after insert on threadloom.checkpoints for each row execute function public.note()`,
  );
  const server = await startTestServer({ connectionString: database.connectionString });
  closers.push(() => server.close());
  const { thread_id: id } = (await server.client.post("/threads").send({})).body as { thread_id: string };
  const ran = await server.client
    .post(`/threads/${id}/runs/wait`)
    .send({ assistant_id: "agent", input: { messages: [{ role: "user", content: "hello" }] } });
  expect(ran.status).toBe(200);
  const seen = await query<{ jit: string }>(database, "select jit from public.seen");
  expect(seen.length).toBeGreaterThan(1);
  expect(new Set(seen.map(({ jit }) => jit))).toEqual(new Set(["off"]));
});

const withLength = (rest: Buffer): Buffer => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + rest.length);
  return Buffer.concat([length, rest]);
};

/** Answers like PgBouncer: a fatal error of the class "protocol violation" to any `options`. */
const refusing = (packet: Buffer): { answer: Buffer } | { pass: Buffer } => {
  if (!packet.includes("options\0")) return { pass: packet };
  const fields = "SFATAL\0C08P01\0Munsupported startup parameter in options: jit\0\0";
  return { answer: Buffer.concat([Buffer.from("E"), withLength(Buffer.from(fields))]) };
};

/** Drops `options`, like PgBouncer with `ignore_startup_parameters = options`. */
const ignoring = (packet: Buffer): { pass: Buffer } => ({
  pass: withLength(
    Buffer.from(
      packet
        .subarray(4)
        .toString("latin1")
        .replace(/options\0[^\0]*\0/, ""),
      "latin1",
    ),
  ),
});

const poolerTo = async (
  connectionString: string,
  begin: (packet: Buffer) => { answer: Buffer } | { pass: Buffer },
): Promise<string> => {
  const target = new URL(connectionString);
  const pooler = createServer((client) => {
    client.on("error", () => undefined);
    client.once("data", (packet: Buffer) => {
      const begun = begin(packet);
      if ("answer" in begun) return client.end(begun.answer);
      const server = connect(Number(target.port), target.hostname);
      server.on("error", () => client.destroy());
      client.on("close", () => server.destroy());
      server.write(begun.pass);
      client.pipe(server).pipe(client);
    });
  }).listen(0, "127.0.0.1");
  await once(pooler, "listening");
  closers.push(async () => {
    pooler.close();
    await once(pooler, "close");
  });
  const address = new URL(connectionString);
  address.port = String((pooler.address() as AddressInfo).port);
  return address.href;
};

test.each([
  ["refuses", refusing],
  ["ignores", ignoring],
])(
  "a pooler that %s options is used without them, and searches behind it are bounded all the same",
  async (_, begin) => {
    const pooler = await poolerTo(database.connectionString, begin);
    const withSettings = await withSessionSettings(pooler);
    expect(withSettings).toBe(pooler);
    const { logger } = listeningLogger();
    const opened = openDatabase({
      connectionString: pooler,
      searchAddresses: searchAddressesOf(pooler, withSettings, { direct: true }),
      poolSize: 1,
      applicationName: "threadloom test",
      preparedStatements: false,
      logger,
    });
    closers.push(() => opened.close());
    expect(await opened.boundedRead("show jit")).toEqual([{ jit: "off" }]);
    expect(await opened.boundedRead("show statement_timeout")).toEqual([{ statement_timeout: "2s" }]);
    expect(await opened.query("show jit")).toEqual([{ jit: "on" }]);
  },
);
