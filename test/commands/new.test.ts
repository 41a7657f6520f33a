import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { packageNameOf } from "../../src/cli/new/manifest.ts";
import { findPackageManager, scriptCommand } from "../../src/cli/new/installing.ts";
import { serverVersion } from "../../src/platform/lib/package-versions.ts";
import { fileExists } from "../../src/platform/lib/file-exists.ts";
import { commandHere } from "../helpers/command-here.ts";
import { eventually } from "../helpers/conditions.ts";
import { commandOf, startCommand } from "../helpers/command-process.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

/** test/main/package.test.ts runs the created projects. */

const aFolder = async (): Promise<string> => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  return folder.path;
};
const make = (cwd: string, ...argv: string[]) => commandHere(["new", "--no-install", ...argv], { cwd });
interface Manifest {
  name: string;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies?: object;
}
const json = async (file: string) => JSON.parse(await readFile(file, "utf8")) as Manifest;

test("new creates a project of the default template, and prints the next steps for the package manager", async () => {
  const cwd = await aFolder();
  const environment = { npm_config_user_agent: "pnpm/9.15.0 npm/? node/v20.20.2 linux x64" };
  const { code, out, stderr } = await commandOf(["new", "My Agent", "--no-install"], { cwd, environment });
  expect([code, stderr]).toEqual([0, ""]);
  expect(out).toContain("Next:\n\n  cd 'My Agent'\n  pnpm install\n  pnpm dev\n");
  expect(out).toContain("which opens by itself: What is 6 * 7?\n");
  expect((await readdir(`${cwd}/My Agent`)).sort()).toEqual([
    ".env.example",
    ".gitignore",
    "README.md",
    "langgraph.json",
    "package.json",
    "pnpm-workspace.yaml",
    "src",
    "test",
    "tsconfig.json",
  ]);
  const { name, dependencies } = await json(`${cwd}/My Agent/package.json`);
  expect([name, dependencies["threadloom"]]).toEqual(["my-agent", `^${serverVersion()}`]);
  const readme = await readFile(`${cwd}/My Agent/README.md`, "utf8");
  expect(readme).toContain("pnpm dev ");
  expect(readme).toContain("`src/agent.ts`");
  expect(readme).not.toContain("{{");
  // pnpm 11 fails if build scripts are neither allowed nor ignored.
  const settings = await readFile(`${cwd}/My Agent/pnpm-workspace.yaml`, "utf8");
  expect(settings).toMatch(/^allowBuilds:\n {2}"esbuild": false\n/);
  const [commands] = /(?<=```sh\n)[^`]*/.exec(readme) ?? [""];
  expect(
    new Set(
      commands
        .trim()
        .split("\n")
        .map((line) => line.indexOf("#")),
    ).size,
  ).toBe(1);
  expect(await readFile(`${cwd}/My Agent/.gitignore`, "utf8")).toContain(".threadloom/\n");
});

test("a project in JavaScript does not need TypeScript", async () => {
  const cwd = await aFolder();
  expect((await make(cwd, "x", "--language", "javascript", "--template", "research")).code).toBe(0);
  const { scripts, devDependencies } = await json(`${cwd}/x/package.json`);
  expect([scripts["test"], devDependencies]).toEqual(["node --test test/research.test.js", undefined]);
  const files = await readdir(`${cwd}/x`, { recursive: true });
  expect(files.filter((file) => /\.ts$|tsconfig/.test(file))).toEqual([]);
});

test("a threadloom from a file or a folder is named relative to the project, another one unchanged", async () => {
  const cwd = await aFolder();
  await writeFile(`${cwd}/threadloom.tgz`, "");
  await make(cwd, "deep/one", "--threadloom", "threadloom.tgz");
  await make(cwd, "two", "--threadloom", "next");
  expect((await json(`${cwd}/deep/one/package.json`))["dependencies"]["threadloom"]).toBe(
    "file:../../threadloom.tgz",
  );
  expect((await json(`${cwd}/two/package.json`))["dependencies"]["threadloom"]).toBe("next");
});

test("a folder with files gets a project beside them, unless one would be overwritten: then new refuses and names it", async () => {
  const cwd = await aFolder();
  await writeFile(`${cwd}/notes.txt`, "mine");
  expect((await make(cwd, ".", "--template", "agent")).code).toBe(0);
  expect(await readFile(`${cwd}/notes.txt`, "utf8")).toBe("mine");

  const other = await aFolder();
  await writeFile(`${other}/package.json`, "mine");
  await mkdir(`${other}/src`);
  await writeFile(`${other}/src/agent.ts`, "mine");
  const { code, stderr } = await make(other, ".");
  expect(code).toBe(2);
  expect(stderr).toContain("would be overwritten: package.json, src/agent.ts. Nothing was written");
  expect((await readdir(other)).sort()).toEqual(["package.json", "src"]);
  expect(await readFile(`${other}/package.json`, "utf8")).toBe("mine");
});

test.each([[[]], [["--yes"]], [["."]]])(
  "in a project that already names its graphs %j points to dev",
  async (argv) => {
    const cwd = await aFolder();
    await writeFile(`${cwd}/langgraph.json`, "{}");
    const { code, stderr } = await make(cwd, ...argv);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      argv.length === 0 ? /^threadloom new: Name a folder/ : /'threadloom dev' serves its graphs/,
    );
    expect(await readdir(cwd)).toEqual(["langgraph.json"]);
  },
);

test.each([
  [[], "Name a folder"],
  [["x", "--template", "chat"], "Allowed choices are agent, approval, research"],
  [["x", "--language", "python"], "Allowed choices are typescript, javascript"],
  [["x", "--package-manager", "cargo"], "Allowed choices are npm, pnpm, yarn, bun"],
  [["x", "--tempalte", "agent"], "Did you mean --template?"],
  [["x", "y"], "too many arguments"],
  [["file.txt"], "is a file. Name a folder"],
])("the wrong usage %j exits with 2 and the reason, and creates nothing", async (argv, sentence) => {
  const cwd = await aFolder();
  await writeFile(`${cwd}/file.txt`, "");
  const { code, stderr } = await make(cwd, ...argv);
  expect(stderr).toContain(sentence);
  expect(code).toBe(2);
  expect(await readdir(cwd)).toEqual(["file.txt"]);
});

test("a failed installation shows the package manager's output, and the project stays", async () => {
  const cwd = await aFolder();
  const { code, stderr } = await commandOf(["new", "x", "--threadloom", "file:./nowhere.tgz"], { cwd });
  expect(code).toBe(1);
  expect(stderr).toContain("its packages are not installed: 'npm install' failed. Run it again there.");
  expect(stderr).toContain("nowhere.tgz");
  expect(await readdir(`${cwd}/x`)).toContain("package.json");
});

test("a stopped installation stops the package manager, and says that the project lacks its packages", async () => {
  const cwd = await aFolder();
  await writeFile(`${cwd}/npm`, "#!/bin/sh\necho begun > begun\nexec sleep 600\n", { mode: 0o755 });
  const environment = { PATH: `${cwd}:${process.env["PATH"]}` };
  const { child, ended } = startCommand(["new", "x"], { cwd, environment });
  await eventually("npm has begun", async () => (await fileExists(`${cwd}/x/begun`)) || undefined);
  child.kill("SIGINT");
  const { code, stderr } = await ended;
  expect(code).toBe(1);
  expect(stderr).toContain(
    `The project is in ${cwd}/x, but its packages are not installed: 'npm install' was stopped.`,
  );
});

test.each([
  ["/tmp/My Agent", "my-agent"],
  ["/tmp/Ünïcode_1", "unicode_1"],
  ["/tmp/...", "agent"],
  ["/", "agent"],
  ["/tmp/zod", "zod-app"],
  ["/tmp/threadloom", "threadloom-app"],
  ["/tmp/node_modules", "node-modules-app"],
  [`/tmp/${"a".repeat(300)}`, "a".repeat(100)],
])("the folder %s becomes the name %s", (folder, name) => {
  expect(packageNameOf(folder)).toBe(name);
});

test("the package manager is the one that runs the command, else that of a lock file above, else npm", async () => {
  const folder = await aFolder();
  expect(await findPackageManager(undefined, folder)).toBe("npm");
  await writeFile(`${folder}/yarn.lock`, "");
  expect(await findPackageManager(undefined, `${folder}/packages/one`)).toBe("yarn");
  expect(await findPackageManager("bun/1.2.0 npm/? node/v20", folder)).toBe("bun");
  expect(await findPackageManager("constructor/1", folder)).toBe("yarn");
  expect(scriptCommand("bun", "test")).toBe("bun run test");
  expect(scriptCommand("npm", "test")).toBe("npm test");
});

test("the steps lead into a folder of any name, and a shell interprets nothing in it", async () => {
  const cwd = await aFolder();
  for (const name of ["$(touch stolen)", "it's", "`x`"]) {
    const { out } = await make(cwd, name);
    const step = /^ {2}(cd .*)$/m.exec(out)?.[1] ?? "";
    const { stdout } = await promisify(execFile)("sh", ["-c", `${step} && ls langgraph.json`], { cwd });
    expect(stdout).toBe("langgraph.json\n");
  }
  expect(await readdir(cwd)).toHaveLength(3);
});

test("an empty name, or one that controls the terminal, is refused and printed safely", async () => {
  const cwd = await aFolder();
  const steering = await make(cwd, "a\u001b[2Jb");
  expect([steering.code, steering.stderr]).toEqual([2, expect.stringContaining("an invisible character")]);
  const unversioned = await make(cwd, "b", "--threadloom", "");
  expect([unversioned.code, unversioned.stderr]).toEqual([
    2,
    expect.stringContaining("--threadloom is empty"),
  ]);
  const unknown = await make(cwd, "--\u001b[2Jb");
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("--?[2Jb")]);
  expect(await readdir(cwd)).toEqual([]);
});

test("an empty folder name is refused, and a dangling link causes a refusal before anything is written", async () => {
  const cwd = await aFolder();
  const unnamed = await make(cwd, "");
  expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining("The folder's name is empty")]);
  await symlink(`${cwd}/nowhere`, `${cwd}/package.json`);
  const { code, stderr } = await make(cwd, ".");
  expect([code, stderr]).toEqual([2, expect.stringContaining("package.json")]);
  expect(await readdir(cwd)).toEqual(["package.json"]);
});
