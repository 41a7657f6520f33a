import { createConnection, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";

export interface CuttingProxy {
  /** The address that replaces the server's. */
  readonly url: string;
  readonly connections: number;
  /** Cuts every connection like a lost network: in the middle of an answer. */
  cut(): void;
  /** Cuts the next connection after this many bytes of its answers. */
  cutNextAfter(bytes: number): void;
  close(): Promise<void>;
}

/** A TCP proxy before a server that can cut its connections. */
export const startCuttingProxy = async (target: { url: string }): Promise<CuttingProxy> => {
  const { hostname, port } = new URL(target.url);
  const open = new Set<Socket>();
  let connections = 0;
  let limit: number | undefined;

  const server = createServer((client) => {
    connections += 1;
    const upstream = createConnection(Number(port), hostname);
    let passed = 0;
    const cutAt = limit;
    limit = undefined;
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      const rest = cutAt === undefined ? chunk : chunk.subarray(0, Math.max(0, cutAt - passed));
      passed += rest.length;
      client.write(rest, () => {
        if (cutAt !== undefined && passed >= cutAt) client.resetAndDestroy();
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    cut() {
      for (const socket of open) socket.resetAndDestroy();
    },
    cutNextAfter(bytes) {
      limit = bytes;
    },
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
};
