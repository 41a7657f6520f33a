import { randomBytes } from "node:crypto";
import { createServer, type AddressInfo } from "node:net";
import { writeFile, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Check } from "../../src/cli/doctor/checks.ts";
import { startTestServer } from "../helpers/app.ts";
import { commandHere } from "../helpers/command-here.ts";
import { commandOf } from "../helpers/command-process.ts";
import { freshDatabase } from "../helpers/database.ts";
import { aProject, fixture, type Project } from "../helpers/project.ts";
import { query } from "../helpers/query.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

/** It uses no CPU, so other tests can. */
const NEVER_LOADED = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";

const GOOD = { "langgraph.json": { graphs: { counter: `${fixture("forms/javascript.js")}:graph` } } };

const aDatabase = async (): Promise<string> => {
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  return database.connectionString;
};

/** The address of the same database for a role with only the rights of a server. */
const asOrdinaryRole = async (url: string): Promise<string> => {
  const role = `threadloom_test_${randomBytes(6).toString("hex")}`;
  const sql = (text: string) => query({ connectionString: url }, text);
  await sql(`create role ${role} login password 'secret'`);
  onTestFinished(async () => {
    await sql(`drop owned by ${role}`);
    await sql(`drop role ${role}`);
  });
  await sql(`grant usage on schema threadloom to ${role}`);
  await sql(`grant select, insert, update, delete on all tables in schema threadloom to ${role}`);
  return Object.assign(new URL(url), { username: role, password: "secret" }).href;
};

const doctor = async (
  project: Project,
  url: string,
  argv: string[] = [],
  environment: Record<string, string> = {},
) => {
  const ended = await commandHere(["doctor", "--port", "0", ...argv, "--json"], {
    cwd: dirname(project.path("langgraph.json")),
    environment: { DATABASE_URL: url, ...environment },
  });
  const { checks } = JSON.parse(ended.out) as { checks: Check[] };
  return { code: ended.code, of: (name: string) => checks.find((check) => check.name === name), checks };
};

test("if nothing is missing every line is OK, and the exit code is 0", async () => {
  const project = await aProject(GOOD);
  await project.linkPackages();
  const url = await asOrdinaryRole(await aDatabase());
  const { code, checks, of } = await doctor(project, url);
  expect(checks.filter(({ level }) => level !== "ok")).toEqual([]);
  expect(code).toBe(0);
  const own = await commandOf(["doctor", "--port", "0", "--json"], {
    cwd: dirname(project.path("langgraph.json")),
    environment: { DATABASE_URL: url },
  });
  expect(own.code).toBe(0);
  const namesOf = (found: Check[]): string[] => found.map(({ name }) => name);
  expect(namesOf((JSON.parse(own.out) as { checks: Check[] }).checks)).toEqual(namesOf(checks));
  expect(of("Graphs")?.text).toBe("counter");
  expect(of("Database")?.text).toMatch(/^PostgreSQL \d+/);
  expect(of("Migrations")?.text).toMatch(/^\d+ applied, none pending$/);
  expect(of("langgraph")?.text).toMatch(/^@langchain\/langgraph 1\./);
});

test("a missing langgraph.json leads to the commands that make one", async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const { out, code } = await commandOf(["doctor", "--port", "0", "--json"], { cwd: folder.path });
  const { checks } = JSON.parse(out) as { checks: Check[] };
  expect([code, checks.find(({ level }) => level === "fail")]).toEqual([
    1,
    expect.objectContaining({
      name: "langgraph.json",
      advice: "Write this file, make a project with 'threadloom new', or name another file with --config.",
    }),
  ]);
});

test("a superuser causes a warning, because a server needs none", async () => {
  const project = await aProject(GOOD);
  await project.linkPackages();
  const { code, of } = await doctor(project, await aDatabase());
  expect(code).toBe(0);
  expect(of("Rights")).toMatchObject({
    level: "warn",
    text: expect.stringMatching(/^\S+ is a superuser /),
    advice: expect.stringContaining("docs/database-role.md"),
  });
});

test("each check is a line that begins with a word, and says what to do below", async () => {
  const project = await aProject({ "langgraph.json": "{" });
  const { code, out } = await commandOf(["doctor", "--port", "0"], {
    cwd: dirname(project.path("langgraph.json")),
    environment: { DATABASE_URL: await aDatabase() },
  });
  expect(code).toBe(1);
  expect(out).toMatch(
    /^FAIL {2}langgraph\.json +\S*langgraph\.json:1:2 is not JSON: .*\n +-> Correct it, or name another file/m,
  );
  expect(out).toMatch(/\n\d+ checks, 1 failed, 1 warned\.\n$/);
  // eslint-disable-next-line no-control-regex
  expect(out).not.toMatch(/\u001b/);
});

test("a graph that never finishes loading costs only its time-out", async () => {
  const project = await aProject({
    "langgraph.json": { graphs: { slow: "./slow.mjs:graph" } },
    "slow.mjs": NEVER_LOADED,
  });
  await project.linkPackages();
  const { code, of } = await doctor(project, await aDatabase(), ["--timeout", "2"]);
  expect(code).toBe(1);
  expect(of("Graphs")).toMatchObject({ level: "fail", text: "Not loaded after 2 s." });
});

test("a graph that ends its process is reported with its output", async () => {
  const project = await aProject({
    "langgraph.json": { graphs: { lethal: "./lethal.mjs:graph" } },
    "lethal.mjs": "process.stderr.write('no key'); process.exit(3);",
  });
  const { of } = await doctor(project, await aDatabase());
  expect(of("Graphs")?.text).toBe("The process that loaded it ended with 3. no key");
});

test("a LangGraph that is too old, or missing, is named with the command that installs one", async () => {
  const project = await aProject(GOOD);
  const manifest = project.path("node_modules/@langchain/langgraph/package.json");
  await mkdir(dirname(manifest), { recursive: true });
  await writeFile(manifest, '{"version": "0.3.9"}');
  const { of } = await doctor(project, await aDatabase());
  expect(of("langgraph")).toMatchObject({ level: "fail", advice: "npm install @langchain/langgraph@latest" });
  expect(of("core")).toMatchObject({ level: "fail", advice: "npm install @langchain/core" });
});

test("a database without tables causes a warning and stays unchanged", async () => {
  const project = await aProject(GOOD);
  await project.linkPackages();
  const url = await aDatabase();
  await query({ connectionString: url }, "drop schema threadloom cascade");
  const { code, of } = await doctor(project, url);
  expect([code, of("Migrations")?.level]).toEqual([0, "warn"]);
  expect(
    await query({ connectionString: url }, "select from pg_namespace where nspname = 'threadloom'"),
  ).toEqual([]);
});

test("a database that does not answer fails, and the output does not contain its password", async () => {
  const project = await aProject(GOOD);
  const { code, of, checks } = await doctor(project, "postgresql://me:hunter2@127.0.0.1:1/app");
  expect([code, of("Database")?.level]).toEqual([1, "fail"]);
  expect(of("Database")?.text).toContain("127.0.0.1:1/app: connect ECONNREFUSED");
  expect(JSON.stringify(checks)).not.toContain("hunter2");
});

test("an unconfigured key is reported", async () => {
  const project = await aProject(GOOD);
  const url = await aDatabase();
  await query(
    { connectionString: url },
    "insert into threadloom.encryption_keys (key_id, proof) values ('Ab3_x9', 'enc1:Ab3_x9:AAAA')",
  );
  const { code, of } = await doctor(project, url);
  expect(code).toBe(1);
  expect(of("Encryption")).toMatchObject({
    level: "fail",
    text: "the key 'Ab3_x9' is not configured",
  });
});

test("a used port is reported, and a Threadloom with its version", async () => {
  const project = await aProject(GOOD);
  const holder = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => holder.once("listening", resolve));
  onTestFinished(() => void holder.close());
  const taken = (holder.address() as AddressInfo).port;
  const url = await aDatabase();
  const { of } = await doctor(project, url, ["--port", String(taken)]);
  expect(of("Port")?.level).toBe("fail");

  const server = await startTestServer();
  onTestFinished(() => server.close());
  const found = await doctor(project, url, ["--port", new URL(server.url).port]);
  expect(found.of("Port")).toMatchObject({ level: "warn" });
  expect(found.of("Port")?.text).toContain("by a Threadloom 0.");
});

test("a start beyond loopback without keys fails; with one it does not", async () => {
  const project = await aProject(GOOD);
  const url = await aDatabase();
  const open = await doctor(project, url, ["--host", "0.0.0.0"]);
  expect(open.of("Access")?.level).toBe("fail");
  const API_KEYS = "0123456789abcdef0123456789abcdef";
  const keyed = await doctor(project, url, ["--host", "0.0.0.0"], { API_KEYS });
  expect(keyed.of("Access")).toEqual({ level: "ok", name: "Access", text: "API_KEYS" });
});

const AUTH = `import { Auth } from "@langchain/langgraph-sdk/auth";
  export const auth = new Auth().authenticate(() => ({ identity: "ada" }));
  export const all = new Auth().authenticate(() => ({ identity: "ada" })).on("*", () => true);
  export const nothing = {};`;
const withAuth = async (path: string, more: object = {}) => {
  const project = await aProject({
    "langgraph.json": { ...GOOD["langgraph.json"], auth: { path, ...more } },
    "auth.ts": AUTH,
    "slow.mjs": NEVER_LOADED,
  });
  await project.linkPackages();
  return project;
};

test.each([
  ["./auth.ts:all", "ok", /auth\.ts loads and covers every event$/],
  ["./auth.ts:auth", "warn", /^no handler covers these events, so every user may do them: .* and \d+ more$/],
  ["./auth.ts:nothing", "fail", /auth\.ts\): 'nothing' /],
  ["./missing.ts:auth", "fail", /^auth\.path: the file .*missing\.ts does not exist/],
  ["./slow.mjs:auth", "fail", /^Not loaded after 5 s\.$/],
])("the auth handlers at %s are loaded like in a server: %s", async (path, level, text) => {
  const patience = path.includes("slow") ? ["--timeout", "5"] : [];
  const { code, of } = await doctor(await withAuth(path), await aDatabase(), patience);
  expect(of("auth")).toMatchObject({ level, text: expect.stringMatching(text) as string });
  expect(code).toBe(level === "fail" ? 1 : 0);
});

test("an invalid application in http.app fails, and a loaded one is named", async () => {
  const ofApp = async (name: string) => {
    const project = await aProject({
      "langgraph.json": { ...GOOD["langgraph.json"], http: { app: `./app.ts:${name}` } },
      "app.ts": "export const app = { fetch: () => new Response() }; export const none = 1;",
    });
    await project.linkPackages();
    return (await doctor(project, await aDatabase())).of("http.app");
  };
  expect(await ofApp("app")).toMatchObject({
    level: "ok",
    text: expect.stringMatching(/app\.ts loads$/) as string,
  });
  expect(await ofApp("none")).toMatchObject({
    level: "fail",
    text: expect.stringContaining("is not an application") as string,
  });
});

test("headers of webhooks with an unset variable fail; secrets for any address cause a warning", async () => {
  const webhooks = { headers: { authorization: "${{ env.LG_WEBHOOK_KEY }}" } };
  const project = await aProject({ "langgraph.json": { ...GOOD["langgraph.json"], webhooks } });
  await project.linkPackages();
  const url = await aDatabase();
  expect((await doctor(project, url)).of("webhooks")).toMatchObject({
    level: "fail",
    text: expect.stringContaining("LG_WEBHOOK_KEY, which is not set") as string,
  });
  const { code, of, checks } = await doctor(project, url, [], { LG_WEBHOOK_KEY: "hunter2" });
  expect([code, of("webhooks")?.level]).toEqual([0, "warn"]);
  expect(JSON.stringify(checks)).not.toContain("hunter2");
});

test("keys for building an image are information, and so is a TypeScript that can't read types", async () => {
  const keys = { dependencies: ["."], python_version: "3.12" };
  const graphs = { counter: `${fixture("counter.ts")}:graph` };
  const project = await aProject({ "langgraph.json": { graphs, ...keys } });
  const manifest = project.path("node_modules/typescript/package.json");
  await mkdir(dirname(manifest), { recursive: true });
  await writeFile(manifest, '{"version": "7.0.2"}');
  const { checks, of } = await doctor(project, await aDatabase());
  const [, { level, text } = { level: "", text: "" }] = checks.filter(
    ({ name }) => name === "langgraph.json",
  );
  expect([level, text]).toEqual([
    "info",
    expect.stringContaining("dependencies, python_version: only for images"),
  ]);
  expect(of("typescript")).toMatchObject({
    level: "info",
    text: expect.stringContaining("npm install --save-dev typescript@5") as string,
  });
});
