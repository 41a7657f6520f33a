import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { createProgram } from "../../src/cli/program.ts";
import { runProgram } from "../../src/cli/run-command.ts";

const PACKAGE = { dependencies: { threadloom: "^0.1.0" } };

const within = async (config: object, files: Record<string, unknown>, ...argv: string[]) => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-image-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const all = {
    "langgraph.json": { graphs: { a: "./a.ts:graph" }, ...config },
    "package.json": PACKAGE,
    ...files,
  };
  for (const [name, content] of Object.entries(all))
    await writeFile(join(folder, name), JSON.stringify(content));
  const [command = "", ...rest] = argv;
  const full = [
    command,
    "--config",
    join(folder, "langgraph.json"),
    ...rest.map((text) => text.replace("<folder>", folder)),
  ];
  let [out, told] = ["", ""];
  const surroundings = {
    environment: {},
    write: (text: string): void => void (out += text),
    tell: (text: string): void => void (told += text),
    terminal: false,
    canAsk: false,
    unread: new AbortController().signal,
    stopping: () => new AbortController().signal,
  };
  const code = await runProgram(await createProgram(full, surroundings), { argv: full, ...surroundings });
  return { code, out, told, folder };
};

test("the Dockerfile has the Node and the lines of langgraph.json, and neither devDependencies nor .env in it", async () => {
  const config = { node_version: "22", dockerfile_lines: ["RUN apt-get update", "ENV LANG=C.UTF-8"] };
  const { code, out, told } = await within(config, { "package-lock.json": {} }, "dockerfile");
  expect([code, told]).toEqual([0, ""]);
  expect(out).toContain("\nARG NODE_IMAGE=node:22-slim\n");
  expect(out).toContain("AS base\nWORKDIR /app\nRUN apt-get update\nENV LANG=C.UTF-8\n");
  expect(out).toContain("COPY package.json package-lock.json ./\n");
  expect(out).toContain("RUN npm ci --omit=dev ");
  expect(out).toContain("RUN rm -rf node_modules .env .env.* ");
  const stages = out.split(/^FROM /m).slice(1);
  expect(stages).toHaveLength(4);
  const last = stages.at(-1) ?? "";
  expect(last).toContain("\nUSER node\n");
  expect(last).not.toContain("COPY . ");
  expect(last).toContain(
    'CMD ["node", "node_modules/threadloom/bin/threadloom.js", "start", "--config", "langgraph.json"]\n',
  );
});

test.each([
  ["pnpm-lock.yaml", "pnpm install --prod --frozen-lockfile"],
  ["yarn.lock", "yarn install --production --frozen-lockfile"],
  ["none", "npm install --omit=dev"],
])("with %s the packages are installed by '%s'", async (lock, install) => {
  const { out } = await within({}, lock === "none" ? {} : { [lock]: {} }, "dockerfile");
  expect(out).toContain(install);
  expect(out.includes(`COPY package.json ${lock} ./`)).toBe(lock !== "none");
});

test("keys for Python are named as meaningless, and a server among the devDependencies is refused", async () => {
  const python = await within(
    { base_image: "x", pip_installer: "uv", python_version: "3.12" },
    {},
    "dockerfile",
  );
  expect(python.told).toContain("mean nothing for this image: base_image, pip_installer, python_version.");
  const dev = await within({}, { "package.json": { devDependencies: { threadloom: "1" } } }, "dockerfile");
  expect([dev.code, dev.out, dev.told]).toEqual([
    1,
    "",
    expect.stringContaining("npm install --save-prod threadloom"),
  ]);
});

test("packages of a workspace are installed where the folders of all of them are", async () => {
  const files = { "package.json": { ...PACKAGE, workspaces: ["packages/*"] }, "package-lock.json": {} };
  const { out } = await within({}, files, "dockerfile");
  const [, , project, dependencies, last] = out.split(/^FROM /m);
  expect(project).toMatch(/^base AS project\nCOPY \. \.\nRUN find \. .*-name node_modules .*-name '\.env' /);
  expect(dependencies).toMatch(
    /^base AS dependencies\nCOPY --from=project \/app \.\/\n#.*\nRUN npm ci --omit=dev /,
  );
  expect(last).toContain("\nCOPY --from=dependencies /app ./\n");
  expect(last).not.toContain("--from=project");
});

test("a package of a workspace is refused, with where its image is made", async () => {
  const root = await mkdtemp(join(tmpdir(), "threadloom-workspace-"));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(join(root, "apps/agent"), { recursive: true });
  await writeFile(join(root, "package.json"), JSON.stringify({ workspaces: ["apps/*"] }));
  await writeFile(join(root, "apps/agent/package.json"), JSON.stringify(PACKAGE));
  await writeFile(join(root, "apps/agent/langgraph.json"), '{"graphs":{"a":"./a.ts:graph"}}');
  const { code, told, out } = await within(
    {},
    {},
    "dockerfile",
    "--config",
    join(root, "apps/agent/langgraph.json"),
  );
  expect([code, out]).toEqual([1, ""]);
  expect(told).toContain(`is a part of the workspace ${root}`);
});

test("a line or a version that would be more than that is refused", async () => {
  expect((await within({ dockerfile_lines: ["RUN a\nUSER root"] }, {}, "dockerfile")).code).toBe(1);
  expect((await within({ node_version: "22\nUSER root" }, {}, "dockerfile")).code).toBe(1);
});

interface Service {
  environment: Record<string, string>;
  read_only?: boolean;
  cap_drop: string[];
  env_file?: { path: string; required: boolean }[];
  ports?: string[];
}

test("the compose file runs a read-only server beside its database, and has no default for a secret", async () => {
  const { code, out } = await within({ env: ".env.production" }, {}, "compose");
  const { services } = parse(out) as { services: { postgres: Service; threadloom: Service } };
  const { postgres, threadloom } = services;
  expect(code).toBe(0);
  expect(threadloom.read_only).toBe(true);
  expect([threadloom.cap_drop, postgres.cap_drop]).toEqual([["ALL"], ["ALL"]]);
  expect(threadloom.ports).toEqual(["127.0.0.1:${PORT:-8123}:8123"]);
  expect(postgres.environment["POSTGRES_PASSWORD"]).toMatch(/^\$\{DATABASE_PASSWORD:\?/);
  expect(threadloom.environment["API_KEYS"]).toMatch(/^\$\{API_KEYS:\?/);
  expect(threadloom.env_file).toEqual([{ path: ".env.production", required: false }]);
  const plain = parse((await within({ env: { A: "1" } }, {}, "compose")).out) as {
    services: { threadloom: Service };
  };
  expect(plain.services.threadloom.env_file).toBeUndefined();
});

test("a file that is there is not written over without --force", async () => {
  const output = ["dockerfile", "--output", "<folder>/package.json"];
  const refused = await within({}, {}, ...output);
  expect([refused.code, refused.told]).toEqual([1, expect.stringContaining("--force")]);
  expect(await readFile(join(refused.folder, "package.json"), "utf8")).toBe(JSON.stringify(PACKAGE));
  const forced = await within({}, {}, ...output, "--force");
  expect([forced.code, forced.out]).toEqual([0, ""]);
  expect(await readFile(join(forced.folder, "package.json"), "utf8")).toContain("FROM base");
});
