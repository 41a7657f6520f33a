import { once } from "node:events";
import WebSocket from "ws";

/** A cell of the access matrix: one request, its answer, and the texts that the answer must not contain. */

export interface Answer {
  status: number;
  headers: Record<string, string>;
  text: string;
  requestId?: string;
}

export interface Asked {
  method: string;
  /** Includes the query. */
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** The last two count this caller's requests, so they differ in each answer. */
const OF_EACH_ANSWER = new Set([
  "date",
  "x-request-id",
  "keep-alive",
  "connection",
  "content-length",
  "ratelimit-remaining",
  "ratelimit-reset",
]);

/** For an endless answer only status and headers are compared; the body is not awaited. */
export const send = async (
  url: string,
  { method, path, body, headers = {} }: Asked,
  { isEndless = false }: { isEndless?: boolean | undefined } = {},
): Promise<Answer> => {
  const answer = await fetch(`${url}${path}`, {
    method,
    redirect: "manual",
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const isStream = isEndless && answer.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (isStream) await answer.body?.cancel();
  return {
    status: answer.status,
    headers: Object.fromEntries([...answer.headers].filter(([name]) => !OF_EACH_ANSWER.has(name))),
    text: isStream ? "" : await answer.text(),
    requestId: answer.headers.get("x-request-id") ?? "",
  };
};

/** The status with which a WebSocket is refused; 101 if it is accepted. */
export const handshake = async (
  url: string,
  path: string,
  headers: Record<string, string> = {},
  protocols: string[] = [],
): Promise<Answer> => {
  const socket = new WebSocket(`${url.replace("http", "ws")}${path}`, protocols, { headers });
  return await new Promise((resolve, reject) => {
    socket.on("open", () => {
      socket.terminate();
      resolve({ status: 101, headers: {}, text: "" });
    });
    socket.on("unexpected-response", (_request, response) => {
      let text = "";
      response.on("data", (data: Buffer) => (text += data.toString()));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: {}, text }));
    });
    socket.on("error", reject);
  });
};

/** The answers to commands sent one after the other over one WebSocket; `closed CODE REASON` if it is closed instead. */
export const overSocket = async (
  url: string,
  threadId: string,
  headers: Record<string, string>,
  commands: readonly (readonly [method: string, params: object])[],
): Promise<string[]> => {
  const socket = new WebSocket(`${url.replace("http", "ws")}/threads/${threadId}/stream/events`, { headers });
  const answers: string[] = [];
  let wake: () => void = () => undefined;
  socket.on("message", (data) => {
    answers.push(String(data as Buffer));
    wake();
  });
  let closed: string | undefined;
  socket.on("close", (code, reason) => {
    closed = `closed ${code} ${String(reason)}`;
    wake();
  });
  await once(socket, "open");
  for (const [index, [method, params]] of commands.entries()) {
    if (closed === undefined) socket.send(JSON.stringify({ id: index, method, params }));
    while (answers.length <= index && closed === undefined)
      await new Promise<void>((resolve) => (wake = resolve));
    if (answers.length <= index) answers.push(closed ?? "");
  }
  socket.terminate();
  return answers;
};

/** Counts cells, and keeps those that leak. */
export const createMatrix = () => {
  const counts = new Map<string, number>();
  const leaks: string[] = [];
  let taken = 0;
  return {
    /** The leaks since the last call. */
    takeLeaks(): string[] {
      const fresh = leaks.slice(taken);
      taken = leaks.length;
      return fresh;
    },
    /** `fault` describes the cell's leak; undefined or an empty text if there is none. */
    cell(column: string, name: string, fault: string | undefined): void {
      counts.set(column, (counts.get(column) ?? 0) + 1);
      if (fault !== undefined && fault !== "") leaks.push(`${column} | ${name}: ${fault}`);
    },
    summary(): string {
      const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
      const columns = [...counts].map(([column, count]) => `${count} ${column}`).join(", ");
      return `access matrix: ${all} cells, ${leaks.length} leaks (${columns})\n`;
    },
  };
};

/** Describes how two answers differ; empty if they are equal. `ids` pairs the ids of both, which count as equal. */
export const difference = (
  one: Answer,
  other: Answer,
  ids: readonly (readonly [string, string])[] = [],
): string => {
  const normal = ({ status, headers, text }: Answer): string =>
    ids.reduce(
      (all, [first, second], index) => all.replaceAll(first, `<${index}>`).replaceAll(second, `<${index}>`),
      JSON.stringify({ status, headers: Object.entries(headers).toSorted(), text }),
    );
  return normal(one) === normal(other) ? "" : `${normal(one)} is not ${normal(other)}`.slice(0, 1_000);
};
