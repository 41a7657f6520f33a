import { spawn } from "node:child_process";
import { platform } from "node:os";
import { dirname, join } from "node:path";
import { fileExists } from "../../platform/lib/file-exists.ts";

export const PACKAGE_MANAGERS = ["npm", "pnpm", "yarn", "bun"] as const;
export type PackageManager = (typeof PACKAGE_MANAGERS)[number];

const LOCK_FILES: readonly (readonly [file: string, manager: PackageManager])[] = [
  ["package-lock.json", "npm"],
  ["pnpm-lock.yaml", "pnpm"],
  ["yarn.lock", "yarn"],
  ["bun.lock", "bun"],
  ["bun.lockb", "bun"],
];

const byLockFile = async (folder: string): Promise<PackageManager | undefined> => {
  for (const [file, manager] of LOCK_FILES) if (await fileExists(join(folder, file))) return manager;
  return dirname(folder) === folder ? undefined : byLockFile(dirname(folder));
};

/**
 * The package manager of this process, else of the nearest lock file, else npm.
 * @param userAgent `npm_config_user_agent`, e.g. `pnpm/9.1.0 npm/? node/v22.0.0`
 */
export const findPackageManager = async (
  userAgent: string | undefined,
  folder: string,
): Promise<PackageManager> => {
  const name = userAgent?.split("/")[0];
  return PACKAGE_MANAGERS.find((manager) => manager === name) ?? (await byLockFile(folder)) ?? "npm";
};

/** `bun test` would run Bun's own test runner. */
export const scriptCommand = (manager: PackageManager, script: string): string => {
  if (manager === "pnpm" || manager === "yarn") return `${manager} ${script}`;
  const isShort = manager === "npm" && ["start", "test"].includes(script);
  return isShort ? `npm ${script}` : `${manager} run ${script}`;
};

export const EXECUTE: Readonly<Record<PackageManager, string>> = {
  npm: "npx",
  pnpm: "pnpm exec",
  yarn: "yarn",
  bun: "bunx",
};

const OUTPUT_CHARACTERS = 4_000;

/** @returns undefined, or the last 4,000 characters of the failure's output; meaningless after `signal` */
export const install = (
  manager: PackageManager,
  folder: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  if (signal.aborted) return Promise.resolve("It was stopped.");
  return new Promise((resolve) => {
    // On Windows package managers are shell scripts. The line has no user input.
    const child = spawn(manager, ["install"], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      shell: platform() === "win32",
    });
    // The terminal sends Ctrl-C to the child, too.
    const stop = (): void => void child.kill();
    signal.addEventListener("abort", stop, { once: true });
    let output = "";
    const keep = (chunk: Buffer): void =>
      void (output = (output + chunk.toString()).slice(-OUTPUT_CHARACTERS));
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    child.once("error", (error: NodeJS.ErrnoException) =>
      resolve(error.code === "ENOENT" ? `${manager} is not installed.` : error.message),
    );
    child.once("close", (code, killedBy) => {
      signal.removeEventListener("abort", stop);
      resolve(code === 0 ? undefined : output.trim() || `It ended with ${killedBy ?? code}.`);
    });
  });
};
