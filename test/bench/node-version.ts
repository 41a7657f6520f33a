import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A Node that runs servers. */
export interface ServerNode {
  path: string;
  /** E.g. `v24.21.0`. */
  version: string;
}

export const OWN_NODE: ServerNode = { path: process.execPath, version: process.version };

/**
 * Another Node, from npm's package `node` in a folder of its own. Throws if the version does not exist.
 * @param version e.g. `24` or `24.21.0`
 */
export const installNode = async (version: string, progress: (text: string) => void): Promise<ServerNode> => {
  if (!/^\d+(\.\d+){0,2}$/.test(version)) throw new Error(`'${version}' is no version of Node.`);
  const folder = join(tmpdir(), `threadloom-bench-node-${version}`);
  progress(`installing Node ${version} in ${folder}`);
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, "package.json"),
    JSON.stringify({ private: true, dependencies: { node: version } }),
  );
  await run("npm", ["install", "--no-audit", "--no-fund"], { cwd: folder });
  const path = join(folder, "node_modules/node/bin/node");
  const { stdout } = await run(path, ["--version"]);
  return { path, version: stdout.trim() };
};
