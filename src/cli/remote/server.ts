import { EventSourceParserStream } from "eventsource-parser/stream";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { StartError, UsageError } from "../../platform/domain/errors.ts";
import type { Environment } from "../../platform/config/resolve.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";

export interface ServerFlags {
  url?: string | undefined;
  apiKey?: string | undefined;
  json?: true;
}

/** `data`: parsed JSON, or text. */
interface RemoteEvent {
  id: string | undefined;
  event: string;
  data: JsonValue;
}

const USUAL_URL = "http://127.0.0.1:8123";
const ANSWER_MS = 60_000;
const RECONNECTS_AT_MOST = 10;
const RECONNECT_MS = 1_000;
const refusalBody = z.looseObject({ detail: z.string().optional(), message: z.string().optional() });

const valueOf = (text: string): JsonValue => {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
};

const sentenceOf = async (response: Response): Promise<string> => {
  const text = await response.text().catch(() => "");
  const { detail, message } = refusalBody.safeParse(valueOf(text)).data ?? {};
  return detail ?? message ?? (text.slice(0, 200) || response.statusText);
};

/** A running server. All methods throw StartError. */
export class RemoteServer {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  /** @throws UsageError for an invalid address */
  constructor({ url, apiKey }: ServerFlags, environment: Environment) {
    this.#base = (url ?? (environment["THREADLOOM_URL"] || USUAL_URL)).replace(/\/+$/, "");
    if (!/^https?:\/\//.test(this.#base) || !URL.canParse(this.#base))
      throw new UsageError(`--url must be an address like ${USUAL_URL}, not '${this.#base}'.`);
    const key = apiKey ?? environment["THREADLOOM_API_KEY"] ?? "";
    this.#headers = key === "" ? {} : { "x-api-key": key };
  }

  async #ask(path: string, init: RequestInit = {}): Promise<Response> {
    const { signal = AbortSignal.timeout(ANSWER_MS) } = init;
    const headers = { ...this.#headers, ...init.headers };
    const response = await fetch(`${this.#base}${path}`, { ...init, headers, signal }).catch(
      (cause: unknown) => {
        throw new StartError(
          `No server answers at ${this.#base}. Start one with 'threadloom start', or choose another with --url.`,
          { cause },
        );
      },
    );
    if (response.ok) return response;
    const sentence = await sentenceOf(response);
    const refused = response.status === 401 || response.status === 403;
    throw new StartError(
      refused ? `${sentence} (set an API key with --api-key or THREADLOOM_API_KEY)` : sentence,
    );
  }

  #send(path: string, body: JsonObject): Promise<Response> {
    const headers = { "content-type": "application/json" };
    return this.#ask(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  async get(path: string): Promise<JsonValue> {
    return (await (await this.#ask(path)).json()) as JsonValue;
  }

  async post(path: string, body: JsonObject): Promise<JsonValue> {
    const response = await this.#send(path, body);
    return response.status === 204 ? null : ((await response.json()) as JsonValue);
  }

  /** `next`: offset of the next page, undefined on the last. */
  async search(path: string, body: JsonObject): Promise<{ items: JsonValue[]; next: number | undefined }> {
    const response = await this.#send(path, body);
    const answer = (await response.json()) as JsonValue;
    const next = response.headers.get("x-pagination-next");
    return { items: Array.isArray(answer) ? answer : [], next: next === null ? undefined : Number(next) };
  }

  async delete(path: string): Promise<void> {
    await this.#ask(path, { method: "DELETE" });
  }

  /** Yields kept events, then new ones until the stream ends; reconnects. */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<RemoteEvent> {
    let last = "-1";
    for (let broken = 0; ;) {
      try {
        const headers = { accept: "text/event-stream", "last-event-id": last };
        const response = await this.#ask(path, { headers, signal });
        const stream = (response.body ?? new ReadableStream<Uint8Array>())
          .pipeThrough(new TextDecoderStream())
          .pipeThrough(new EventSourceParserStream());
        for await (const { id, event = "message", data } of stream) {
          last = id ?? last;
          broken = 0;
          yield { id, event, data: valueOf(data) };
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof StartError) throw error;
        broken += 1;
        if (broken > RECONNECTS_AT_MOST)
          throw new StartError(`The stream of ${this.#base} broke too many times. Try again.`, {
            cause: error,
          });
        await delay(RECONNECT_MS);
      }
    }
  }
}
