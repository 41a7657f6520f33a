import { connect, type Socket } from "node:net";

/**
 * A small HTTP/1.1 client on sockets. The client shares the machine's cores with the measured server, and both `fetch` and `node:http` cost
 * several times as much per request. It supports the bodies of a JSON API: with a length, chunked, or none.
 */

export interface Answer {
  status: number;
  body: string;
}

/** Called with each piece of a body when it arrives; such a body isn't kept. */
export type OnData = (data: Buffer) => void;

interface Listeners {
  onHead?: () => void;
  onData?: OnData;
}

interface Pending extends Listeners {
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
}

/** Idle time after which a request counts as failed. */
const SILENCE_MS = 120_000;
const HEAD_END = "\r\n\r\n";
const NOTHING = Buffer.alloc(0);

class Connection {
  #socket: Socket;
  #pending: Pending | undefined;
  #rest: Buffer = NOTHING;
  #status = 0;
  /** The current part: a head, a body of known length, or a part of a chunked one. */
  #reading: "head" | "body" | "chunk-size" | "chunk" | "chunk-end" = "head";
  #remaining = 0;
  #last = false;
  #keepAlive = true;
  #parts: Buffer[] = [];
  closed = false;

  constructor(
    host: string,
    port: number,
    private readonly onIdle: (connection: Connection) => void,
  ) {
    this.#socket = connect(port, host);
    this.#socket.setNoDelay(true);
    this.#socket.setTimeout(SILENCE_MS, () => this.#socket.destroy(new Error("The server was silent.")));
    this.#socket.on("data", (data) => this.#read(data));
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("close", () => this.#fail(new Error("The server closed the connection.")));
  }

  send(request: string, listeners: Listeners): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#pending = { ...listeners, resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.closed = true;
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.reject(error);
  }

  #read(data: Buffer): void {
    let buffer = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
    this.#rest = NOTHING;
    while (buffer.length > 0) {
      if (this.#reading === "head" || this.#reading === "chunk-size") {
        const mark = this.#reading === "head" ? HEAD_END : "\r\n";
        const end = buffer.indexOf(mark, 0, "latin1");
        if (end === -1) {
          this.#rest = buffer;
          return;
        }
        const text = buffer.toString("latin1", 0, end);
        buffer = buffer.subarray(end + mark.length);
        if (this.#reading === "head") this.#readHead(text);
        else {
          this.#remaining = Number.parseInt(text, 16);
          this.#last = this.#remaining === 0;
          this.#reading = this.#last ? "chunk-end" : "chunk";
        }
      } else if (this.#reading === "chunk-end") {
        if (buffer.length < 2) {
          this.#rest = buffer;
          return;
        }
        buffer = buffer.subarray(2);
        if (this.#last) this.#finish();
        else this.#reading = "chunk-size";
      } else {
        const part = buffer.subarray(0, this.#remaining);
        buffer = buffer.subarray(part.length);
        this.#remaining -= part.length;
        if (this.#pending?.onData === undefined || this.#status >= 400) this.#parts.push(part);
        else this.#pending.onData(part);
        if (this.#remaining > 0) continue;
        if (this.#reading === "chunk") this.#reading = "chunk-end";
        else this.#finish();
      }
    }
  }

  #readHead(head: string): void {
    this.#status = Number(head.slice(9, 12));
    this.#pending?.onHead?.();
    const lower = head.toLowerCase();
    this.#keepAlive = !lower.includes("\r\nconnection: close");
    if (lower.includes("\r\ntransfer-encoding: chunked")) {
      this.#reading = "chunk-size";
      return;
    }
    this.#remaining = Number(/\r\ncontent-length: *(\d+)/.exec(lower)?.[1] ?? 0);
    if (this.#remaining === 0) this.#finish();
    else this.#reading = "body";
  }

  #finish(): void {
    const parts = this.#parts;
    this.#parts = [];
    this.#reading = "head";
    this.#last = false;
    const pending = this.#pending;
    this.#pending = undefined;
    const [first] = parts;
    const body = parts.length > 1 ? Buffer.concat(parts).toString() : (first?.toString() ?? "");
    if (this.#keepAlive) this.onIdle(this);
    else this.close();
    pending?.resolve({ status: this.#status, body });
  }
}

/** Opens as many connections as there are parallel requests, and keeps them. `headers` are added to every request. */
export const createHttpClient = (address: string, headers: Readonly<Record<string, string>> = {}) => {
  const own = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");
  const { hostname, port, host } = new URL(address);
  const idle: Connection[] = [];
  const all = new Set<Connection>();

  const take = (): Connection => {
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (!connection.closed) return connection;
      all.delete(connection);
    }
    const connection = new Connection(hostname, Number(port), (free) => idle.push(free));
    all.add(connection);
    return connection;
  };

  const requestText = (method: string, path: string, body?: unknown): string => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const content =
      body === undefined
        ? ""
        : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
    return `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n${own}${content}\r\n${text}`;
  };

  const request = async (
    method: string,
    path: string,
    body?: unknown,
    listeners: Listeners = {},
  ): Promise<Answer> => {
    const answer = await take().send(requestText(method, path, body), listeners);
    // A benchmark of failures would be fast, and wrong.
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
    return answer;
  };

  return {
    get: (path: string) => request("GET", path),
    post: (path: string, body: unknown) => request("POST", path, body),
    delete: (path: string) => request("DELETE", path),
    stream: (path: string, body: unknown, onData: OnData) => request("POST", path, body, { onData }),
    /** Like `stream`, for an existing record; `onHead` is called when the server has sent the headers. */
    follow: (path: string, onData: OnData, onHead: () => void) =>
      request("GET", path, undefined, { onData, onHead }),
    /** Like `stream`, for an endless stream, on a connection of its own. Returns a function that ends it. */
    listen(path: string, body: unknown, listeners: Required<Listeners>): () => void {
      const connection = new Connection(hostname, Number(port), () => undefined);
      all.add(connection);
      connection.send(requestText("POST", path, body), listeners).catch(() => all.delete(connection));
      return () => connection.close();
    },
    async json<T>(path: string, body?: unknown): Promise<T> {
      const answer = await (body === undefined ? request("GET", path) : request("POST", path, body));
      return JSON.parse(answer.body) as T;
    },
    close(): void {
      for (const connection of all) connection.close();
    },
  };
};

export type HttpClient = ReturnType<typeof createHttpClient>;
