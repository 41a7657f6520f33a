import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** Frontend messages that execute a statement: `Query` and `Execute` of PostgreSQL's protocol (chapter "Message Formats"). */
const EXECUTING = new Set([..."QE"].map((letter) => letter.charCodeAt(0)));
const LENGTH_BYTES = 4;

/** Counts the messages of one connection. The first one, the startup packet, has no type. */
const createMessageCounter = (executed: () => void): ((chunk: Buffer) => void) => {
  let typeBytes = 0;
  let head = Buffer.alloc(0);
  let remaining = 0;
  return (chunk) => {
    for (let offset = 0; offset < chunk.length;) {
      if (remaining > 0) {
        const skipped = Math.min(remaining, chunk.length - offset);
        remaining -= skipped;
        offset += skipped;
        continue;
      }
      const missing = typeBytes + LENGTH_BYTES - head.length;
      head = Buffer.concat([head, chunk.subarray(offset, offset + missing)]);
      offset += missing;
      if (head.length < typeBytes + LENGTH_BYTES) return;
      if (typeBytes === 1 && EXECUTING.has(head[0]!)) executed();
      remaining = head.readInt32BE(typeBytes) - LENGTH_BYTES;
      typeBytes = 1;
      head = Buffer.alloc(0);
    }
  };
};

/** A TCP proxy in front of PostgreSQL that counts statements, which must not be encrypted. */
export const startCountingProxy = async (connectionString: string) => {
  const target = new URL(connectionString);
  const sockets = new Set<Socket>();
  let statements = 0;
  const proxy = createServer((client) => {
    const server = connect(Number(target.port), target.hostname);
    const count = createMessageCounter(() => (statements += 1));
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (chunk: Buffer) => {
        if (from === client) count(chunk);
        to.write(chunk);
      });
      from.on("error", () => undefined);
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const url = new URL(connectionString);
  url.port = String((proxy.address() as AddressInfo).port);
  return {
    connectionString: url.href,
    statements: () => statements,
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  };
};
