import { EventSourceParserStream } from "eventsource-parser/stream";
import { InvalidArgumentError, Option, type Command } from "commander";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { StartError, UsageError } from "../../platform/domain/errors.ts";
import { uuid } from "../../platform/domain/json-schemas.ts";
import { answeringJson, limitArgument } from "../flags.ts";
import type { Environment } from "../../platform/config/resolve.ts";
import { NotDoneError } from "../run-command.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { printable } from "../printable.ts";

const MILLISECONDS = new Map([
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

export const parseDuration = (text: string): number | undefined => {
  const [, number = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const factor = MILLISECONDS.get(unit);
  return factor === undefined ? undefined : Number(number) * factor;
};

const LARGEST_FIRST: readonly (readonly [unit: string, milliseconds: number])[] = [...MILLISECONDS].reverse();

export const durationText = (milliseconds: number): string => {
  const [unit, factor] = LARGEST_FIRST.find(([, size]) => milliseconds >= 2 * size) ?? ["ms", 1];
  return `${unit === "s" ? (milliseconds / factor).toFixed(1) : Math.round(milliseconds / factor)} ${unit}`;
};

export const idsArgument = (text: string, before: string[] | undefined): string[] => [
  ...(before ?? []),
  idArgument(text),
];

interface Action {
  command: "runs" | "threads";
  /** E.g. `cancelled`; also the name of the field in JSON. */
  done: string;
  /** E.g. `Run`. */
  noun: string;
  json: boolean;
  act(id: string): Promise<unknown>;
}

interface Output {
  write(text: string): void;
  note(text: string): void;
}

/** A StartError for one id does not stop the others. @throws NotDoneError at the end */
export const forEachId = async (
  ids: readonly string[],
  { command, done, noun, json, act }: Action,
  { write, note }: Output,
): Promise<void> => {
  const failed: string[] = [];
  for (const id of ids) {
    try {
      await act(id);
      if (!json) note(`${noun} ${id} is ${done}.\n`);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      failed.push(id);
      note(`threadloom ${command}: ${error.message}\n`);
    }
  }
  if (json) write(`${JSON.stringify({ [done]: ids.filter((id) => !failed.includes(id)), failed })}\n`);
  if (failed.length > 0) throw new NotDoneError();
};

export interface ListFlags extends ServerFlags {
  status?: string;
  graph?: string;
  assistant?: string;
  since?: Date;
  limit: number;
}

interface ListWords {
  statuses: readonly string[];
  /** Stands between "only those" and "of this graph" in the help. */
  whose?: string;
  /** Completes the help of `--since`, e.g. "were made". */
  happened: string;
}

export const listing = (command: Command, { statuses, whose = "", happened }: ListWords): Command =>
  onServer(command)
    .addOption(new Option("--status <status>", "only those").choices(statuses))
    .option("--graph <id>", `only those ${whose}of this graph`)
    .option("--assistant <id>", `only those ${whose}of this assistant`)
    .option("--since <time>", `only those that ${happened} since: 15m, 24h, 7d or a time`, sinceArgument)
    .option("--limit <number>", "how many at most", limitArgument, 20);

interface Search<Item> {
  path: string;
  body: JsonObject;
  limit: number;
  parse(items: JsonValue[]): Item[];
  idOf(item: Item): string;
  /** True stops the paging. */
  isPast?(item: Item): boolean;
}

/** The server ends a page early if records are long. A record that moves to the next page is listed once. */
export const readListed = async <Item>(
  server: Pick<RemoteServer, "search">,
  { path, body, limit, parse, idOf, isPast = () => false }: Search<Item>,
): Promise<Item[]> => {
  const found = new Map<string, Item>();
  let offset: number | undefined = 0;
  while (offset !== undefined && found.size < limit) {
    const page: { items: JsonValue[]; next: number | undefined } = await server.search(path, {
      ...body,
      limit: limit - found.size,
      offset,
    });
    const items = parse(page.items);
    for (const item of items) {
      if (isPast(item)) return [...found.values()];
      found.set(idOf(item), item);
    }
    // An offset that does not grow would loop forever.
    offset = page.next !== undefined && page.next > offset ? page.next : undefined;
  }
  return [...found.values()];
};

const EVENT_COLUMN = 18;

const failureIn = (event: string, data: JsonValue): string | undefined =>
  event === "error" ? (typeof data === "string" ? data : JSON.stringify(data)) : undefined;

interface TailSurroundings {
  write(text: string): void;
  readonly columns?: number | undefined;
  readonly unread: AbortSignal;
  stopping(): AbortSignal;
}

interface TailOptions {
  path: string;
  json: boolean;
}

/**
 * @throws StartError at the end of a failed run
 * @returns whether the stream ended by itself
 */
export const tail = async (
  server: RemoteServer,
  { path, json }: TailOptions,
  { write, columns, unread, stopping }: TailSurroundings,
): Promise<boolean> => {
  let failure: string | undefined;
  const signal = AbortSignal.any([unread, stopping()]);
  for await (const { id, event, data } of server.events(path, { from: "-1", signal })) {
    failure = failureIn(event, data) ?? failure;
    const text = typeof data === "string" ? data : JSON.stringify(data);
    const line = `${event.padEnd(EVENT_COLUMN)} ${printable(text)}`;
    const shown = columns === undefined || line.length <= columns ? line : `${line.slice(0, columns - 1)}…`;
    write(json ? `${JSON.stringify({ id, event, data })}\n` : `${shown}\n`);
  }
  if (failure !== undefined) throw new StartError(`The run failed: ${printable(failure)}`);
  return !signal.aborted;
};

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
