import { spawn } from "node:child_process";
import { platform } from "node:os";
import { dirname, join } from "node:path";
import { StartError } from "../../platform/domain/errors.ts";
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

/** The package manager shows its own progress. @throws StartError */
export const install = async (
  manager: PackageManager,
  folder: string,
  signal: AbortSignal,
): Promise<void> => {
  // On Windows package managers are shell scripts. The line has no user input.
  const child = spawn(manager, ["install"], {
    cwd: folder,
    stdio: ["ignore", 2, 2],
    shell: platform() === "win32",
  });
  // The terminal sends Ctrl-C to the child, too.
  const stop = (): void => void child.kill();
  signal.addEventListener("abort", stop, { once: true });
  const failure = await new Promise<string | undefined>((resolve) => {
    child.once("error", (error) => resolve(`failed: ${error.message}`));
    child.once("close", (code) => resolve(code === 0 ? undefined : "failed"));
  });
  signal.removeEventListener("abort", stop);
  if (failure === undefined) return;
  throw new StartError(
    `The project is in ${folder}, but its packages are not installed: '${manager} install' ` +
      `${signal.aborted ? "was stopped" : failure}. Run it again there.`,
  );
};
