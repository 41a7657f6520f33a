import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TEMPLATE_QUESTIONS, TEMPLATES, type Language, type Template } from "../../src/cli/new/templates.ts";
import { eventually } from "../helpers/conditions.ts";
import { freshDatabase } from "../helpers/database.ts";
import { aFolder, packPackage, type InstalledProject } from "../package/installed-project.ts";
import {
  baseImage,
  build,
  inspect,
  reasonForNoImages,
  remove,
  start,
  toolVersions,
  type Started,
} from "./engine.ts";
import { freePort } from "../helpers/free-port.ts";

/**
 * Each image as an operator uses it: built, started beside a PostgreSQL, requested, and stopped. A chroot can't test read-only file
 * systems, capabilities, and memory limits.
 */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BIN = join(ROOT, "bin/threadloom.js");
const KEY = "a-key-of-the-operator-of-32-bytes";
const MEGABYTE = 1_000_000;

const LANGUAGE_OF: Readonly<Record<Template, Language>> = {
  agent: "typescript",
  approval: "javascript",
  research: "typescript",
};

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const megabytes = (bytes: number): string => `${Math.round(bytes / MEGABYTE)} MB`;
const seconds = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(1)} s`;

const reason = reasonForNoImages();
if (reason !== undefined) print(`No image is built: ${reason}.`);

describe.skipIf(reason !== undefined)("an image", () => {
  let base: string;
  let baseBytes: number;
  let packed: Awaited<ReturnType<typeof packPackage>> | undefined;
  let projects: InstalledProject | undefined;
  const tags: string[] = [];

  beforeAll(async () => {
    base = await baseImage();
    baseBytes = (await inspect(base)).bytes;
    print(`${toolVersions()}; base ${base}, ${megabytes(baseBytes)}`);
  });
  afterAll(async () => {
    for (const tag of tags) await remove(tag);
    await projects?.remove();
    await packed?.remove();
  });

  const answersAndEnds = async (
    server: Started,
    url: string,
    assistant: string,
    question: string,
  ): Promise<void> => {
    const ask = (path: string, body: object, headers: Record<string, string> = { "x-api-key": KEY }) =>
      fetch(`${url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
    expect((await ask("/threads/search", {}, {})).status).toBe(401);
    const made = await ask("/threads", {});
    const { thread_id } = (await made.json()) as { thread_id: string };
    const answer = await ask(`/threads/${thread_id}/runs/wait`, {
      assistant_id: assistant,
      input: { messages: [{ role: "user", content: question }] },
    });
    const values = (await answer.json()) as { messages?: unknown[] };
    expect([answer.status, Object.keys(values)]).toEqual([200, expect.not.arrayContaining(["__error__"])]);
    const list = await fetch(`${url}/threads/${thread_id}/runs`, { headers: { "x-api-key": KEY } });
    expect(await list.json()).toEqual([
      expect.objectContaining({ status: expect.stringMatching(/^success$|^interrupted$/) as string }),
    ]);

    const page = await (await fetch(`${url}/console/`)).text();
    const script = /src="\.\/(assets\/[^"]+\.js)"/.exec(page)?.[1] ?? "no script";
    expect((await fetch(`${url}/console/${script}`)).status).toBe(200);

    process.kill(server.pid(), "SIGTERM");
    expect(await server.exit()).toBe(0);
    expect(server.output()).toContain('"msg":"stopped"');
    expect(server.output()).not.toMatch(/"level":(50|60)/);
  };

  /** Builds the image of a folder, and uses it like an operator. */
  const serves = async (name: string, folder: string, assistant: string, question: string): Promise<void> => {
    const tag = `localhost/threadloom-test:${name}`;
    tags.push(tag);
    const begun = performance.now();
    await build(tag, folder, base);
    const builtAfter = performance.now() - begun;
    const { bytes, config, healthCheck } = await inspect(tag);
    expect([config.User, Object.keys(config.ExposedPorts)]).toEqual(["node", ["8123/tcp"]]);

    const database = await freshDatabase();
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const startedAt = performance.now();
    const server = await start(tag, config, {
      DATABASE_URL: database.connectionString,
      API_KEYS: KEY,
      HOST: "127.0.0.1",
      PORT: String(port),
    });
    try {
      let end: number | string | undefined;
      void server.exit().then((how) => (end = how));
      await eventually("the server to answer", async () => {
        if (end !== undefined) throw new Error(`It ended (${end}): ${server.output()}`);
        return (await fetch(`${url}/ok`).catch(() => undefined))?.ok === true;
      });
      const startedAfter = performance.now() - startedAt;
      // The user `node`, who owns no file of the image.
      expect(server.userId()).toBe(1_000);
      expect(await server.exec(...healthCheck)).toBe("");
      await answersAndEnds(server, url, assistant, question);
      print(
        `${name}: built in ${seconds(builtAfter)}, ${megabytes(bytes - baseBytes)} above its base, ` +
          `answers ${seconds(startedAfter)} after its start`,
      );
    } finally {
      await server.close();
      await database.drop();
    }
  };

  test("of this repository serves its example graphs as a user without rights, and stops in order", async () => {
    await serves("repository", ROOT, "agent", "What is 6 * 7?");
  });

  test.each(TEMPLATES)("of a new project of the template %s does the same", async (template) => {
    packed ??= await packPackage();
    projects ??= await aFolder({});
    const language = LANGUAGE_OF[template];
    await projects.node(BIN, "new", template, "--template", template, "--language", language, "--no-install");
    const folder = projects.path(template);
    // From this source, while a user's project names a published version.
    await mkdir(join(folder, "vendor"));
    await copyFile(packed.file, join(folder, "vendor/threadloom.tgz"));
    const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
      dependencies: Record<string, string>;
    };
    manifest.dependencies["threadloom"] = "file:./vendor/threadloom.tgz";
    await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
    const project = projects.within(template);
    await project.npm("install", "--package-lock-only", "--no-audit", "--no-fund");
    await project.node(BIN, "dockerfile", "--output", "Dockerfile");
    await serves(template, folder, template, TEMPLATE_QUESTIONS[template]);
  });
});
