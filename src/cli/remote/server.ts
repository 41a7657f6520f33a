import { EventSourceParserStream } from "eventsource-parser/stream";
import { InvalidArgumentError, type Command } from "commander";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { StartError, UsageError } from "../../platform/domain/errors.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { uuid } from "../../platform/domain/json-schemas.ts";
import { answeringJson } from "../flags.ts";
import { parseDuration } from "./duration.ts";
import type { Environment } from "../../platform/config/resolve.ts";

export interface ServerFlags {
  url?: string | undefined;
  apiKey?: string | undefined;
  json?: true;
}

export const onServer = (command: Command): Command =>
  answeringJson(
    command
      .option("--url <url>", "the server (default: THREADLOOM_URL, else http://127.0.0.1:8123)")
      .option("--api-key <key>", "an API key (default: THREADLOOM_API_KEY)"),
  );

/** `data`: parsed JSON, or text. */
interface RemoteEvent {
  id: string | undefined;
  event: string;
  data: JsonValue;
}

/** All methods throw StartError. */
export interface RemoteServer {
  get(path: string): Promise<JsonValue>;
  post(path: string, body: JsonObject): Promise<JsonValue>;
  /** `next`: offset of the next page, undefined on the last. */
  search(path: string, body: JsonObject): Promise<{ items: JsonValue[]; next: number | undefined }>;
  delete(path: string): Promise<void>;
  /** Yields kept events, then new ones until the stream ends; reconnects. */
  events(
    path: string,
    options: { from: string | undefined; signal: AbortSignal },
  ): AsyncGenerator<RemoteEvent>;
}

const USUAL_URL = "http://127.0.0.1:8123";
const ANSWER_MS = 60_000;
const RECONNECTS_AT_MOST = 10;
const RECONNECT_MS = 1_000;
const refusalBody = z.looseObject({ detail: z.string().optional(), message: z.string().optional() });

const sentenceOf = async (response: Response): Promise<string> => {
  const text = await response.text().catch(() => "");
  try {
    const { detail, message } = refusalBody.parse(JSON.parse(text));
    return detail ?? message ?? text;
  } catch {
    return text.slice(0, 200) || response.statusText;
  }
};

const valueOf = (text: string): JsonValue => {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
};

/**
 * @param signal ends requests, except for streams; without it they end after a minute
 * @throws UsageError for an invalid address
 */
export const remoteServer = (
  flags: ServerFlags,
  environment: Environment,
  signal?: AbortSignal,
): RemoteServer => {
  const base = (flags.url ?? (environment["THREADLOOM_URL"] || USUAL_URL)).replace(/\/+$/, "");
  if (!/^https?:\/\//.test(base) || !URL.canParse(base))
    throw new UsageError(`--url must be an address like ${USUAL_URL}, not '${base}'.`);
  const key = flags.apiKey ?? environment["THREADLOOM_API_KEY"] ?? "";
  const authorization: Record<string, string> = key === "" ? {} : { "x-api-key": key };

  const ask = async (path: string, init: RequestInit): Promise<Response> => {
    let response: Response;
    try {
      response = await fetch(`${base}${path}`, { ...init, headers: { ...authorization, ...init.headers } });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new StartError(
        `No server answers at ${base}. Start one with 'threadloom start', or choose another with --url.`,
        { cause: error },
      );
    }
    if (response.ok) return response;
    const sentence = await sentenceOf(response);
    const refused = response.status === 401 || response.status === 403;
    throw new StartError(
      refused ? `${sentence} (set an API key with --api-key or THREADLOOM_API_KEY)` : sentence,
    );
  };
  const timed = (init: RequestInit = {}): RequestInit => ({
    ...init,
    signal: signal ?? AbortSignal.timeout(ANSWER_MS),
  });

  const sendJson = (path: string, body: JsonObject): Promise<Response> =>
    ask(
      path,
      timed({
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    );

  return {
    async get(path) {
      return (await (await ask(path, timed())).json()) as JsonValue;
    },
    async post(path, body) {
      const response = await sendJson(path, body);
      return response.status === 204 ? null : ((await response.json()) as JsonValue);
    },
    async search(path, body) {
      const response = await sendJson(path, body);
      const answer = (await response.json()) as JsonValue;
      const next = response.headers.get("x-pagination-next");
      return {
        items: Array.isArray(answer) ? answer : [],
        next: next === null ? undefined : Number(next),
      };
    },
    async delete(path) {
      await ask(path, timed({ method: "DELETE" }));
    },
    async *events(path, { from, signal }) {
      let last = from;
      for (let broken = 0; ;) {
        const headers = { accept: "text/event-stream", ...(last !== undefined && { "last-event-id": last }) };
        const response = await ask(path, { headers, signal }).catch((error: unknown) => {
          if (!signal.aborted) throw error;
        });
        if (response === undefined) return;
        const stream = (response.body ?? new ReadableStream<Uint8Array>())
          .pipeThrough(new TextDecoderStream())
          .pipeThrough(new EventSourceParserStream());
        try {
          for await (const { id, event = "message", data } of stream) {
            last = id ?? last;
            broken = 0;
            yield { id, event, data: valueOf(data) };
          }
          return;
        } catch (error) {
          if (signal.aborted) return;
          broken += 1;
          if (broken > RECONNECTS_AT_MOST)
            throw new StartError(`The stream of ${base} broke too many times. Try again.`, { cause: error });
          await delay(RECONNECT_MS);
        }
      }
    },
  };
};

export const idArgument = (text: string): string => {
  const parsed = uuid.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError("Use an id like 0199f3a0-0000-7000-8000-000000000000.");
};

export const sinceArgument = (text: string): Date => {
  const ago = parseDuration(text);
  const moment = ago === undefined ? new Date(text) : new Date(Date.now() - ago);
  if (!Number.isNaN(moment.getTime())) return moment;
  throw new InvalidArgumentError("Use a duration like 15m, 24h or 7d, or a time like 2026-01-31T12:00:00Z.");
};
