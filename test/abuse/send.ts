import { Agent, request as open, type IncomingMessage } from "node:http";
import type { Credentials } from "./callers.ts";

export interface Request {
  method: string;
  address: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
}

/** The outcome of a request. `waiting`: nothing within its patience; `broken`: the connection ended without an answer. */
export type Outcome =
  | { kind: "answered"; status: number; text: string; milliseconds: number }
  | { kind: "waiting" }
  | { kind: "broken"; why: string };

/** Characters of an answer that are checked. */
const TEXT_AT_MOST = 2_000;

/** `credentials`: headers of each request without its own. */
export const createSender = (url: string, connections: number, credentials: Credentials = {}) => {
  const { hostname, port } = new URL(url);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });

  /**
   * Sends a request and reads its answer; only the beginning of a long one (a stream, a wait). `patienceMs`: for the first byte, and then
   * again for the rest.
   */
  const send = async ({ method, address, body, headers }: Request, patienceMs: number): Promise<Outcome> => {
    const startedAt = performance.now();
    return await new Promise((resolve) => {
      const sent = open({
        ...{ hostname, port, method, path: address, agent },
        headers: { ...credentials, ...headers },
      });
      let text = "";
      let answer: IncomingMessage | undefined;
      const end = (outcome: Outcome): void => {
        clearTimeout(timer);
        resolve(outcome);
      };
      const answered = (): void =>
        end({
          kind: "answered",
          status: answer?.statusCode ?? 0,
          text,
          milliseconds: performance.now() - startedAt,
        });
      const onPatienceEnded = (): void => {
        if (answer === undefined) end({ kind: "waiting" });
        else answered();
        sent.destroy();
      };
      let timer = setTimeout(onPatienceEnded, patienceMs);
      sent.on("response", (response) => {
        answer = response;
        clearTimeout(timer);
        timer = setTimeout(onPatienceEnded, patienceMs);
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          if (text.length < TEXT_AT_MOST) text += chunk.slice(0, TEXT_AT_MOST);
        });
        response.on("end", answered);
        response.on("error", answered);
      });
      sent.on("error", (error: NodeJS.ErrnoException) =>
        end({ kind: "broken", why: error.code ?? error.message }),
      );
      sent.end(body);
    });
  };

  return { send, close: () => agent.destroy() };
};

export type Sender = ReturnType<typeof createSender>;
