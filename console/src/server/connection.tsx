import { Client } from "@langchain/langgraph-sdk";
import { createContext, useContext } from "react";
import { apiUrl } from "./address.ts";
import { credentialHeaders, type SignIn } from "./credentials.ts";
import { ApiError, apiErrorFrom, messageIn, statusOf } from "./api-error.ts";
import { fetchWithRetry, retryAfterSeconds } from "./rate-limit.ts";

export interface Connection {
  readonly apiUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly client: Client;
  /**
   * For operations without a method in the official client.
   * @param path e.g. `/runs/search`
   * @throws ApiError
   */
  request<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** @throws ApiError */
  search<Item>(path: string, body: object): Promise<SearchPage<Item>>;
  readonly info: ServerInfo;
}

export interface SearchPage<Item> {
  items: Item[];
  /** Undefined if the server does not count. */
  total: number | undefined;
  hasMore: boolean;
  /** For lists with cursors, whose pages do not shift when items come or go. */
  cursor: string | undefined;
}

export interface ServerInfo {
  /** The field `version` is the version of the API. */
  threadloom_version?: string;
  langgraph_js_version?: string;
}

/**
 * After a proxy's 504 the server may have executed the request, so a retry could create a second assistant.
 * React Query retries queries.
 */
const MAX_RETRIES = 0;

const BAD_GATEWAY = 502;

/**
 * Rejects a web page: a proxy that requires a login answers with a page and status 200.
 * @throws ApiError
 */
export const fetchAnswer: typeof fetch = async (input, init) => {
  const answer = await fetchWithRetry(input, init);
  // The official client drops the headers of an error.
  if (retryAfterSeconds(answer) !== undefined) throw await apiErrorFrom(answer);
  if (!answer.ok || !/^text\/html\b/i.test(answer.headers.get("content-type") ?? "")) return answer;
  await answer.body?.cancel();
  throw new ApiError(
    BAD_GATEWAY,
    "A proxy answered in place of the server. Perhaps you have to sign in there.",
  );
};

const CLIENT_ERROR = /^(?:HTTP (\d+): |Protocol request failed: (\d+)[^—]*(?:— |$))([^]*)$/;

/** Messages of Chromium, Firefox, Safari and the official client. */
const UNREACHABLE = /^(Failed to fetch|NetworkError when|Load failed|Unable to connect to LangGraph server)/;

/**
 * The official client wraps the server's sentence as `HTTP 404: {"detail": …}` or `Protocol request failed:
 * 404 Not Found — {"detail": …}`.
 */
export const messageOf = (thrown: unknown): string => {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (UNREACHABLE.test(message)) return "The server can't be reached.";
  const [, ofRequest, ofStream, text] = CLIENT_ERROR.exec(message) ?? [];
  const status = ofRequest ?? ofStream;
  return status === undefined ? message : messageIn(text ?? "", Number(status));
};

/** @throws ApiError with status 401 or 403 */
export const connect = async (signIn: SignIn, key: string | undefined): Promise<Connection> => {
  const headers = credentialHeaders(signIn, key);
  const send = async (method: string, path: string, body?: unknown): Promise<[string, Headers]> => {
    const answer = await fetchAnswer(`${apiUrl}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw await apiErrorFrom(answer);
    const text = await answer.text();
    return [text, answer.headers];
  };
  const request = async <Answer,>(method: string, path: string, body?: unknown): Promise<Answer> => {
    const [text] = await send(method, path, body);
    return (text === "" ? undefined : JSON.parse(text)) as Answer;
  };
  const search = async <Item,>(path: string, body: object): Promise<SearchPage<Item>> => {
    const [text, answered] = await send("POST", path, body);
    const total = answered.get("x-pagination-total");
    const cursor = answered.get("x-pagination-cursor") ?? undefined;
    return {
      items: JSON.parse(text) as Item[],
      total: total === null ? undefined : Number(total),
      hasMore: cursor !== undefined || answered.has("x-pagination-next"),
      cursor,
    };
  };
  const [info] = await Promise.all([
    request<ServerInfo>("GET", "/info").catch((error: unknown) => {
      // `http.disable_meta` removes `/info`.
      if (statusOf(error) === 404) return {};
      throw error;
    }),
    request("GET", "/console/caller"),
  ]);
  const client = new Client({
    apiUrl,
    apiKey: null,
    defaultHeaders: headers,
    callerOptions: { maxRetries: MAX_RETRIES, fetch: fetchAnswer },
  });
  return { apiUrl, headers, client, request, search, info };
};

const ConnectionContext = createContext<Connection | undefined>(undefined);
export const ConnectionProvider = ConnectionContext.Provider;

export const useConnection = (): Connection => {
  const connection = useContext(ConnectionContext);
  if (connection === undefined) throw new Error("There is no connection above this component.");
  return connection;
};
