import { once } from "node:events";
import { connect } from "node:net";

/** A server's unparsed answer. */
export interface RawAnswer {
  status: number;
  head: string;
  body: string;
}

/**
 * Sends a request line unchanged, with the headers, and with the address as `Host` unless they contain it. Resolves when the server has
 * closed the connection; an opened WebSocket is closed at once.
 */
export const sendRaw = async (
  url: string,
  line: string,
  { body = "", headers = {} }: { body?: string; headers?: Record<string, string> } = {},
): Promise<RawAnswer> => {
  const { hostname, port, host } = new URL(url);
  const all = { host, connection: "close", "content-length": String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  const socket = connect(Number(port), hostname);
  let text = "";
  socket.setEncoding("latin1");
  socket.on("data", (data: string) => {
    text += data;
    if (text.startsWith("HTTP/1.1 101 ")) socket.destroy();
  });
  socket.on("error", () => undefined);
  socket.write(`${line} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
  await once(socket, "close");
  const [head = "", ...rest] = text.split("\r\n\r\n");
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0), head, body: rest.join("\r\n\r\n") };
};

/** The headers of a request for a WebSocket. */
export const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};
