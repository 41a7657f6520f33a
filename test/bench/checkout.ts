import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ROOT } from "./server-process.ts";

const git = (...args: string[]): string =>
  execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();

interface Checkout {
  root: string;
  close(): Promise<void>;
}

/** Checks a commit out into a folder of its own, with the packages of its lock file. A folder is used unchanged. */
export const checkOut = async (commit: string, progress: (text: string) => void): Promise<Checkout> => {
  if (existsSync(join(commit, "package.json")))
    return { root: resolve(commit), close: async () => undefined };
  const parent = await mkdtemp(join(tmpdir(), "threadloom-against-"));
  const root = join(parent, "commit");
  git("worktree", "add", "--detach", root, commit);
  const close = async (): Promise<void> => {
    git("worktree", "remove", "--force", root);
    await rm(parent, { recursive: true, force: true });
  };
  try {
    if (git("diff", "--name-only", commit, "--", "package-lock.json") === "")
      await symlink(join(ROOT, "node_modules"), join(root, "node_modules"));
    else {
      progress(`installing the packages of ${commit}`);
      execFileSync("npm", ["ci", "--no-audit", "--no-fund"], {
        cwd: root,
        stdio: ["ignore", "ignore", "inherit"],
      });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { root, close };
};
