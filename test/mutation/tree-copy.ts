import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { applied, type Mutant } from "./mutant.ts";

export interface TestRun {
  verdict: "passed" | "failed" | "time-out";
  /** The first test that failed, as `file: test`. */
  failed: string;
  reason: string;
  /** Milliseconds of each file that ran, by its name in `TARGETS`. */
  tookMs: Map<string, number>;
}

interface Report {
  testResults: {
    name: string;
    status: string;
    startTime: number;
    endTime: number;
    message: string;
    assertionResults: { status: string; fullName: string; failureMessages: string[] }[];
  }[];
}

const OUTPUT_CHARACTERS_KEPT = 4_000;

const endGroup = (pid: number | undefined): void => {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of them are gone.
  }
};

/**
 * A copy of the project's tree in `folder`, with linked packages, so the real tree never changes. `databaseUrl`: the PostgreSQL of the
 * tests.
 */
export const copyTree = async (root: string, folder: string, databaseUrl: string) => {
  const listed = await promisify(execFile)("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    maxBuffer: 16 * 1024 * 1024,
  });
  for (const path of listed.stdout.split("\n").filter(Boolean)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await cp(join(root, path), join(folder, path)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error; // the file was removed without git
    });
  }
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  const reportFile = join(folder, "mutation-report.json");
  let running: number | undefined;

  const readReport = async (): Promise<Report> =>
    JSON.parse(await readFile(reportFile, "utf8").catch(() => '{"testResults":[]}')) as Report;

  return {
    /** Runs these tests in order, up to the first failure. */
    async test(tests: readonly string[], limitMs: number): Promise<TestRun> {
      const files = tests.map((test) => `test/${test}.test.ts`);
      await rm(reportFile, { force: true });
      const child = spawn(
        process.execPath,
        [
          join(root, "node_modules/vitest/vitest.mjs"),
          ...[
            "run",
            "--config",
            "test/mutation/vitest.config.ts",
            "--reporter=json",
            `--outputFile=${reportFile}`,
          ],
          ...files,
        ],
        {
          cwd: folder,
          env: { ...process.env, TEST_DATABASE_URL: databaseUrl, MUTATION_TESTS: files.join() },
          stdio: ["ignore", "pipe", "pipe"],
          detached: true, // a process group of its own, which can be ended as a whole
        },
      );
      running = child.pid;
      let output = "";
      const keep = (chunk: Buffer): void => {
        output = (output + chunk.toString()).slice(-OUTPUT_CHARACTERS_KEPT);
      };
      child.stdout.on("data", keep);
      child.stderr.on("data", keep);
      let late = false;
      const timer = setTimeout(() => {
        late = true;
        endGroup(child.pid);
      }, limitMs);
      const [code] = (await once(child, "close")) as [number | null];
      clearTimeout(timer);
      endGroup(child.pid);
      running = undefined;
      const { testResults } = await readReport();
      const tookMs = new Map<string, number>();
      let failed = "";
      let reason = "";
      for (const { name, startTime, endTime, assertionResults, status, message } of testResults) {
        const test = relative(join(folder, "test"), name).replace(/\.test\.ts$/, "");
        if (assertionResults.some((one) => one.status === "passed")) tookMs.set(test, endTime - startTime);
        const first = assertionResults.find((one) => one.status === "failed");
        if (failed === "" && (first !== undefined || status === "failed"))
          failed = `${test}: ${first?.fullName ?? message.split("\n")[0] ?? ""}`;
        if (reason === "") reason = first?.failureMessages[0]?.split("\n")[0] ?? "";
      }
      if (late) return { verdict: "time-out", failed, reason, tookMs };
      if (code === 0) return { verdict: "passed", failed: "", reason, tookMs };
      return {
        verdict: "failed",
        failed: failed === "" ? output.trim().slice(-300) : failed,
        reason,
        tookMs,
      };
    },

    /** Runs `work` while the copy contains the mutant. */
    async withMutant<Result>(mutant: Mutant, work: () => Promise<Result>): Promise<Result> {
      const path = join(folder, mutant.file);
      const source = await readFile(path, "utf8");
      await writeFile(path, applied(source, mutant));
      try {
        return await work();
      } finally {
        await writeFile(path, source);
      }
    },

    stop(): void {
      endGroup(running);
    },
  };
};
