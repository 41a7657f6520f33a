import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface DeafProxy {
  /** The address that replaces the server's. */
  readonly url: string;
  /** Ends the streams of the server without notice to their clients. Returns their number. */
  loseStreams(): number;
  close(): Promise<void>;
}

export const startDeafProxy = async (target: string): Promise<DeafProxy> => {
  const streams = new Set<IncomingMessage>();
  const server = createServer((asked, answer) => {
    const { url = "/", method, headers } = asked;
    const passed = request(new URL(url, target), { method, headers }, (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.on("data", (chunk: Buffer) => answer.write(chunk));
      answered.on("end", () => answer.end());
      answered.on("error", () => undefined);
      if (!/event-stream/.test(answered.headers["content-type"] ?? "")) return;
      streams.add(answered);
      answered.on("close", () => streams.delete(answered));
    });
    passed.on("error", () => undefined);
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    loseStreams() {
      const lost = [...streams];
      for (const stream of lost) stream.destroy();
      return lost.length;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
};
