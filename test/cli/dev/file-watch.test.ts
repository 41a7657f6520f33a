import { mkdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { FileWatch } from "../../../src/cli/dev/file-watch.ts";
import { PATIENTLY } from "../../helpers/conditions.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";

const aWatch = async (names: readonly string[] = ["a.ts"]) => {
  const folder = await temporaryFolder();
  const reported: string[][] = [];
  const watch = new FileWatch(
    async (files) => void reported.push(files.map((file) => file.slice(folder.path.length + 1))),
  );
  onTestFinished(async () => {
    watch.close();
    await folder.remove();
  });
  const path = (name: string): string => join(folder.path, name);
  for (const name of names) {
    await mkdir(join(path(name), ".."), { recursive: true });
    await writeFile(path(name), "first");
  }
  await watch.set(names.map(path), Date.now() + 60_000);
  return {
    watch,
    reported,
    path,
    untilReported: () => vi.waitFor(() => expect(reported).not.toEqual([]), PATIENTLY),
  };
};

test("a file that is overwritten is reported", async () => {
  const { reported, path, untilReported } = await aWatch();
  await writeFile(path("a.ts"), "second");
  await untilReported();
  expect(reported).toEqual([["a.ts"]]);
});

test("a file that is replaced by a rename is reported, each time", async () => {
  const { reported, path } = await aWatch();
  for (const content of ["second", "third"]) {
    reported.length = 0;
    await writeFile(path("a.tmp"), content);
    await rename(path("a.tmp"), path("a.ts"));
    await vi.waitFor(() => expect(reported).toEqual([["a.ts"]]), PATIENTLY);
  }
});

test("a file that is written without a change is not reported, and neither is one beside it", async () => {
  const { reported, path, untilReported } = await aWatch(["a.ts", "b.ts"]);
  await writeFile(path("a.ts"), "first");
  await utimes(path("a.ts"), 1, 1);
  await writeFile(path("c.ts"), "new");
  await writeFile(path("b.ts"), "second");
  await untilReported();
  expect(reported.flat()).toEqual(["b.ts"]);
});

test("a folder that is removed and created again is watched again", async () => {
  const { reported, path, untilReported } = await aWatch(["sub/a.ts"]);
  await rm(path("sub"), { recursive: true });
  await untilReported();
  await mkdir(path("sub"));
  await writeFile(path("sub/a.ts"), "second");
  await vi.waitFor(() => expect(reported.length).toBeGreaterThan(1), PATIENTLY);
  reported.length = 0;
  await writeFile(path("sub/a.ts"), "third");
  await untilReported();
  expect(reported.flat()).toContain("sub/a.ts");
});

test("a newly watched file that was written meanwhile counts as changed", async () => {
  const { watch, reported, path, untilReported } = await aWatch();
  await writeFile(path("b.ts"), "written while the graph was loaded");
  await watch.set([path("a.ts"), path("b.ts")], Date.now() - 60_000);
  await untilReported();
  expect(reported.flat()).toEqual(["b.ts"]);
});

test("new modules of the folder count if requested, and neither logs nor packages do", async () => {
  const { watch, reported, path, untilReported } = await aWatch();
  await watch.set([path("a.ts")], Date.now() + 60_000, path("."));
  await mkdir(path("node_modules"));
  await writeFile(path("node_modules/c.js"), "a package");
  await writeFile(path("dev.log"), "not reloaded");
  await mkdir(path("deep"));
  await writeFile(path("deep/b.ts"), "what was missing");
  await untilReported();
  expect(reported.flat()).toEqual(["deep/b.ts"]);
});
