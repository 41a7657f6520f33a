import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";

/** Connections that arrive faster than a server accepts them. */

/** Twice Node's default backlog in the kernel. */
const CONNECTIONS = 1_000;
const KERNEL_MS_AT_MOST = 5_000;
const SOMAXCONN = "/proc/sys/net/core/somaxconn";

const numberIn = (path: string): number => {
  try {
    return Number(readFileSync(path, "utf8"));
  } catch {
    return 0;
  }
};

/** Connections to a port with a finished handshake, from the view of their clients. */
const establishedTo = (port: number): number => {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1);
  return lines.filter((line) => {
    const [, , to = "", state] = line.trim().split(/\s+/);
    return to.endsWith(remote) && state === "01";
  }).length;
};

test("a thousand concurrent connections wait for a server that is not accepting at the moment", async (context) => {
  if (numberIn(SOMAXCONN) < CONNECTIONS)
    context.skip("the kernel holds fewer connections (net.core.somaxconn)");
  const server = await startTestServer();
  const sockets: Socket[] = [];
  try {
    const port = Number(new URL(server.url).port);
    // Node connects in ticks, which run before this process accepts any connection.
    const waiting = await new Promise<number>((resolve) => {
      for (let count = 0; count < CONNECTIONS; count += 1)
        sockets.push(connect(port, "127.0.0.1").on("error", () => undefined));
      process.nextTick(() => {
        // The kernel needs a moment; this process must not accept a connection meanwhile.
        const moment = new Int32Array(new SharedArrayBuffer(4));
        const end = performance.now() + KERNEL_MS_AT_MOST;
        while (establishedTo(port) < CONNECTIONS && performance.now() < end) Atomics.wait(moment, 0, 0, 20);
        resolve(establishedTo(port));
      });
    });
    expect(waiting).toBe(CONNECTIONS);
  } finally {
    for (const socket of sockets) socket.destroy();
    await server.close();
  }
});
