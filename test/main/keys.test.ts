import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isKeyText, makeKey } from "../../src/access/keys/key-text.ts";
import { create as createKeys, parseExpiry } from "../../src/cli/commands/keys.ts";
import { onOwnDatabase } from "../../src/cli/own-database.ts";
import { runCommand } from "../../src/cli/run-command.ts";
import { findPostmaster } from "../../src/platform/database/embedded/embedded.ts";
import { findPlace } from "../../src/platform/database/embedded/place.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { programOf } from "../helpers/compiled-package.ts";
import { eventually } from "../helpers/conditions.ts";
import { FIXTURE_GRAPHS } from "../helpers/parts.ts";
import { temporaryFolder, type TemporaryFolder } from "../helpers/temporary-folder.ts";

let server: TestServer;
let folder: TemporaryFolder;
beforeAll(async () => {
  server = await startTestServer();
  folder = await temporaryFolder();
});
afterAll(async () => {
  await server.close();
  await folder.remove();
});

interface Ended {
  code: number;
  out: string;
  stderr: string;
}

const keys = async (argv: string[], environment: Record<string, string>): Promise<Ended> => {
  const child = spawn(process.execPath, [programOf(), "keys", ...argv], {
    cwd: folder.path,
    env: { PATH: process.env.PATH ?? "", ...environment },
  });
  let [out, stderr] = ["", ""];
  child.stdout.on("data", (data: Buffer) => (out += data.toString()));
  child.stderr.on("data", (data: Buffer) => (stderr += data.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, out, stderr };
};
const here = (...argv: string[]) => keys(argv, { DATABASE_URL: server.connectionString });

test("a key is created, listed and revoked while a server runs, which knows it at once", async () => {
  const made = await here("create", "--name", "ci", "--scopes", "read,run", "--expires", "30d", "--json");
  expect(made.code).toBe(0);
  const { key, id, ...stderr } = JSON.parse(made.out) as { key: string; id: string; expires_at: string };
  expect(isKeyText(key)).toBe(true);
  expect(stderr).toMatchObject({ name: "ci", scopes: ["read", "run"], status: "active", last_used_at: null });
  expect((Date.parse(stderr.expires_at) - Date.now()) / 86_400_000).toBeCloseTo(30, 1);
  const statusWith = async (headers: Record<string, string>) =>
    (await fetch(`${server.url}/openapi.json`, { headers })).status;
  await eventually("the server knows the key", async () => (await statusWith({})) === 401);
  expect(await statusWith({ "x-api-key": key })).toBe(200);

  const listed = await within(["list"]);
  expect(listed.out).toMatch(new RegExp(`^ID +NAME.*\\n${id} +ci +read,run +active`));
  expect(listed.out + listed.stderr).not.toContain(key.slice(3));

  const revoked = await here("revoke", key);
  expect([revoked.code, revoked.out]).toEqual([0, ""]);
  expect(revoked.stderr).toContain(`The key 'ci' (${id}) is revoked`);
  expect(revoked.stderr).not.toContain(key);
  await eventually("the server refuses it", async () => (await statusWith({ "x-api-key": key })) === 403);
  expect(await statusWith({})).toBe(401);
});

/** The same in this process. */
const within = async (argv: string[]): Promise<Ended> => {
  let [out, stderr] = ["", ""];
  const write = (text: string): void => void (out += text);
  const note = (text: string): void => void (stderr += text);
  const surroundings = { environment: {}, write, note };
  const onOwn = onOwnDatabase(surroundings);
  const command = createKeys(surroundings, ({ databaseUrl = server.connectionString }, work) =>
    onOwn({ databaseUrl, config: FIXTURE_GRAPHS }, work),
  );
  return { code: await runCommand(command, { argv, write, note }), out, stderr };
};

test.each<[string[], number, string]>([
  [["revoke", "nobody"], 1, "There is no API key 'nobody'; 'keys list' shows them."],
  [["revoke", makeKey()], 1, "There is no API key that is given; 'keys list' shows them."],
  [["create", "--name", "0123456789ab", "--scopes", "read"], 1, "A name must not look like a key or its id."],
  [["create", "--name", "a\nb", "--scopes", "read"], 1, "A name has 1 to 100 characters"],
  [["create", "--name", "x", "--scopes", "read", "--expires", "2020-01-01"], 1, "can't have expired already"],
  [["create", "--name", "x", "--scopes", "write"], 2, "Use read, run, admin, separated by commas."],
  [
    ["create", "--name", "x", "--scopes", "read", "--expires", "soon"],
    2,
    "Use a duration or a time: 90m, 12h",
  ],
  [["create", "--scopes", "read"], 2, "required option '--name <name>' not specified"],
  [["forget"], 2, "required option '--yes' not specified"],
  [["lst"], 2, "Did you mean list?"],
  [["list", "--database-url", "mysql://x"], 2, "--database-url must be a URL like postgresql://"],
  [["list", "--database-url", "postgresql://me:hunter2@127.0.0.1:1/x"], 1, "127.0.0.1:1/x can't be used"],
])("%j exits with %i and the reason", async (argv, code, sentence) => {
  const ended = await within(argv);
  expect([ended.code, ended.out]).toEqual([code, ""]);
  expect(ended.stderr).toMatch(/^threadloom keys: /);
  expect(ended.stderr).toContain(sentence);
  expect(ended.stderr).not.toMatch(/\n\s+at |hunter2/);
});

test("help exits with 0, and shows examples", async () => {
  const [all, one] = [await within(["--help"]), await within(["create", "--help"])];
  expect([all.code, one.code, all.stderr + one.stderr]).toEqual([0, 0, ""]);
  expect(all.out).toContain("$ threadloom keys create --name ci --scopes read,run --expires 30d");
  expect(one.out).toContain("--expires <when>");
});

test("only revoked keys can be removed", async () => {
  await within(["create", "--name", "still used", "--scopes", "read"]);
  const refused = await within(["forget", "--yes"]);
  expect([refused.code, refused.stderr]).toEqual([
    1,
    "threadloom keys: Some keys are not revoked: revoke them first.\n",
  ]);
  await within(["revoke", "still used"]);
  expect((await within(["list", "--all"])).out).toContain("still used");
  expect((await within(["forget", "--yes"])).code).toBe(0);
  expect((await within(["list", "--all"])).out).toBe("There are no keys.\n");
});

test("the command starts the embedded PostgreSQL if no server runs, and stops it again", async () => {
  const flags = ["--data", folder.dataFolder];
  const made = await keys(["create", "--name", "first", "--scopes", "admin", ...flags], {});
  expect(made.code).toBe(0);
  // A script reads only the key.
  expect(isKeyText(made.out.trim())).toBe(true);
  expect(await findPostmaster(await findPlace(folder.dataFolder))).toBeUndefined();
});

test("a key's expiry is given as a duration or a time", () => {
  const now = new Date("2027-01-01T00:00:00Z");
  const day = 86_400;
  expect([parseExpiry("90m"), parseExpiry("12h"), parseExpiry("30d"), parseExpiry("never")]).toEqual([
    5_400,
    day / 2,
    30 * day,
    undefined,
  ]);
  expect(parseExpiry("2027-01-31", now)).toBe(30 * day);
  expect(parseExpiry("2027-01-01T12:00:00Z", now)).toBe(day / 2);
  for (const text of ["", "30", "-1d", "1.5d", "d", "tomorrow", "2027-13-01"])
    expect(() => parseExpiry(text)).toThrow("Use a duration or a time");
});
