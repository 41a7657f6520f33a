import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Images without a running engine: podman builds them, and buildah starts their programs in a chroot. */

const TOOLS = ["podman", "buildah", "debootstrap"];
const ENVIRONMENT = { ...process.env, STORAGE_DRIVER: process.env["STORAGE_DRIVER"] ?? "overlay" };
const LARGEST_OUTPUT = 64 * 1024 * 1024;
/** Processes in a chroot have the network of the machine. */
const ISOLATION = ["--isolation", "chroot", "--network", "host"];

const run = async (command: string, ...argv: string[]): Promise<string> => {
  const options = { env: ENVIRONMENT, maxBuffer: LARGEST_OUTPUT };
  return (await promisify(execFile)(command, argv, options)).stdout.trim();
};

/** Why no image can be built here; undefined if one can. */
export const reasonForNoImages = (): string | undefined => {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const missing = TOOLS.filter((tool) => !folders.some((folder) => existsSync(join(folder, tool))));
  if (missing.length > 0)
    return `${missing.join(", ")} missing (Debian: apt install podman buildah debootstrap fuse-overlayfs)`;
  return process.getuid?.() === 0
    ? undefined
    : "only root makes a base image by debootstrap and starts processes in it";
};

/** The base image: NODE_IMAGE, else one of this machine's Node, built once. */
export const baseImage = async (): Promise<string> => {
  const { NODE_IMAGE } = process.env;
  if (NODE_IMAGE !== undefined) return NODE_IMAGE;
  const tag = `localhost/threadloom-test-base:node-${process.versions.node}`;
  const exists = await run("podman", "image", "exists", tag).then(
    () => true,
    () => false,
  );
  if (!exists) await run(fileURLToPath(new URL("base.sh", import.meta.url)), tag);
  return tag;
};

/** Builds an image of a folder from its Dockerfile, without keeping layers for another build. */
export const build = async (tag: string, folder: string, base: string): Promise<void> => {
  const argv = [
    ...ISOLATION,
    "--layers=false",
    "--format",
    "docker",
    "--build-arg",
    `NODE_IMAGE=${base}`,
    "--tag",
    tag,
  ];
  await run("podman", "build", ...argv, "--file", join(folder, "Dockerfile"), folder);
};

export interface ImageConfig {
  User: string;
  Cmd: string[];
  Env: string[];
  ExposedPorts: Record<string, unknown>;
}
interface Inspected {
  Size: number;
  Config: ImageConfig;
  HealthCheck?: { Test: string[] };
  Healthcheck?: { Test: string[] };
}

export interface Image {
  bytes: number;
  config: ImageConfig;
  healthCheck: string[];
}

export const inspect = async (tag: string): Promise<Image> => {
  const [{ Size, Config, HealthCheck, Healthcheck }] = JSON.parse(
    await run("podman", "image", "inspect", tag),
  ) as [Inspected];
  // In the form ["CMD", "node", …].
  return { bytes: Size, config: Config, healthCheck: ((HealthCheck ?? Healthcheck)?.Test ?? []).slice(1) };
};

export const remove = async (tag: string): Promise<void> => {
  await run("podman", "image", "rm", "--force", tag);
};

/** All descendants of a process. */
const below = (ancestor: number): number[] => {
  try {
    return readdirSync(`/proc/${ancestor}/task`).flatMap((task) => {
      const text = readFileSync(`/proc/${ancestor}/task/${task}/children`, "utf8").trim();
      const children = text === "" ? [] : text.split(" ").map(Number);
      return children.flatMap((child) => [child, ...below(child)]);
    });
  } catch {
    // It has just ended.
    return [];
  }
};

const commandOf = (pid: number): string[] => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
};

export interface Started {
  output(): string;
  /** The id of the image's own process; throws if it does not run. */
  pid(): number;
  /** The user of that process: 0 would be root. */
  userId(): number;
  exec(...command: string[]): Promise<string>;
  /** Waits for the end; resolves with the exit code or the signal. */
  exit(): Promise<number | NodeJS.Signals>;
  /** Ends the process if it still runs, and removes the container. */
  close(): Promise<void>;
}

/** Starts the image's program as the image's user. */
export const start = async (
  tag: string,
  { Cmd }: ImageConfig,
  environment: Readonly<Record<string, string>>,
): Promise<Started> => {
  const container = await run("buildah", "from", "--pull-never", tag);
  const variables = Object.entries(environment).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  const inside = ["run", ...ISOLATION, ...variables, container, "--"];
  const child = spawn("buildah", [...inside, ...Cmd], {
    env: ENVIRONMENT,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let written = "";
  child.stdout.on("data", (chunk: Buffer) => (written += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (written += chunk.toString()));
  const ended = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  const processes = (): number[] => (child.pid === undefined ? [] : below(child.pid));
  const [program = "", ...rest] = Cmd;
  /** The program has already been looked up in PATH. */
  const isOwn = ([path = "", ...others]: readonly string[]): boolean =>
    basename(path) === basename(program) && others.join("\0") === rest.join("\0");
  const pid = (): number => {
    const own = processes().find((each) => isOwn(commandOf(each)));
    if (own === undefined) throw new Error(`${Cmd.join(" ")} does not run: ${written}`);
    return own;
  };
  return {
    output: () => written,
    pid,
    userId: () => Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid()}/status`, "utf8"))?.[1]),
    exec: (...command) => run("buildah", ...inside, ...command),
    exit: () => ended,
    async close() {
      for (const each of processes()) {
        try {
          process.kill(each, "SIGKILL");
        } catch {
          // It ended with the previous process.
        }
      }
      await ended;
      await run("buildah", "rm", container);
    },
  };
};

/** The versions of the tools, as `podman 4.3.1`. */
export const toolVersions = (): string =>
  TOOLS.map((tool) => {
    const text = execFileSync(tool, ["--version"], { encoding: "utf8" });
    return `${tool} ${/\d+(?:\.\d+)+/.exec(text)?.[0]}`;
  }).join(", ");
