import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** The receiver's answer; undefined: 204. */
export type Answering = (received: Received, response: ServerResponse) => void;

export const startReceiver = async (answering?: Answering, host = "127.0.0.1") => {
  const received: Received[] = [];
  const state = { answering, connections: 0 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const one = {
        path: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      };
      received.push(one);
      if (state.answering === undefined) response.writeHead(204).end();
      else state.answering(one, response);
    });
  });
  server.on("connection", () => (state.connections += 1));
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${host}:${port}`,
    received,
    get connections() {
      return state.connections;
    },
    answer(next: Answering | undefined): void {
      state.answering = next;
    },
    payloads: (): Record<string, unknown>[] =>
      received.map(({ body }) => JSON.parse(body) as Record<string, unknown>),
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;
