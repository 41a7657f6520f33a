import { readdir, readFile, readlink } from "node:fs/promises";
import { createServer } from "node:net";
import { sqlState } from "../../platform/domain/errors.ts";
import { fail, ok, warn, type Check } from "./checks.ts";

const ANSWER_MS = 2_000;
const LISTENING = "0A";

const bind = (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", (error) => resolve(sqlState(error) ?? error.message));
    probe.listen(port, host, () => probe.close(() => resolve(undefined)));
  });

const threadloomAt = async (port: number): Promise<string | undefined> => {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/info`, { signal: AbortSignal.timeout(ANSWER_MS) });
    const { threadloom_version: version } = (await response.json()) as { threadloom_version?: string };
    return version;
  } catch {
    return undefined;
  }
};

/** Undefined outside of Linux, and for other users' processes. */
const holderOf = async (port: number): Promise<string | undefined> => {
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8").catch(() => "")),
  );
  const end = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const sockets = tables
    .flatMap((table) => table.split("\n").map((line) => line.trim().split(/\s+/)))
    .filter((fields) => fields[1]?.endsWith(end) === true && fields[3] === LISTENING)
    .map((fields) => `socket:[${fields[9]}]`);
  if (sockets.length === 0) return undefined;
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const id of processes) {
    for (const descriptor of await readdir(`/proc/${id}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${id}/fd/${descriptor}`).catch(() => "");
      if (!sockets.includes(target)) continue;
      const name = (await readFile(`/proc/${id}/comm`, "utf8").catch(() => "")).trim();
      return `process ${id} (${name})`;
    }
  }
  return undefined;
};

export const checkPort = async (host: string, port: number): Promise<Check> => {
  const where = `${host}:${port}`;
  const code = port === 0 ? undefined : await bind(host, port);
  if (code === undefined) return ok("Port", port === 0 ? "any free one" : `${where} is free`);
  if (code === "EADDRINUSE") {
    const [version, holder] = await Promise.all([threadloomAt(port), holderOf(port)]);
    const by = holder === undefined ? "" : `, ${holder}`;
    return version === undefined
      ? fail(
          "Port",
          `${where} is taken by another program${by}`,
          `Choose another port, e.g. --port ${port + 1}.`,
        )
      : warn(
          "Port",
          `${where} is taken by a Threadloom ${version} that runs${by}`,
          `To start a second one, give it another port, e.g. --port ${port + 1}.`,
        );
  }
  if (code === "EACCES")
    return fail("Port", `listening on ${where} is not permitted`, "Choose a port above 1023 with --port.");
  return fail(
    "Port",
    `no server can listen on ${where} (${code})`,
    "Choose an address of this machine with --host.",
  );
};
