import { Client } from "@langchain/langgraph-sdk";
import { createContext, useContext } from "react";
import { apiUrl } from "./address.ts";
import { credentialHeaders, type SignIn } from "./credentials.ts";
import { ApiError, apiErrorFrom, messageIn } from "./api-error.ts";
import { fetchWithRetry, retryAfterSeconds } from "./rate-limit.ts";

/** The server, as one caller sees it. */
export interface Connection {
  readonly apiUrl: string;
  /** Of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** The official client. */
  readonly client: Client;
  /**
   * What the official client has no method for.
   * @param path e.g. `/runs/search`
   * @throws ApiError
   */
  request<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
  /**
   * One page of a search by POST.
   * @throws ApiError
   */
  search<Item>(path: string, body: object): Promise<SearchPage<Item>>;
  /** What is served; from `/info`. */
  readonly info: ServerInfo;
}

/** A page of what a search finds. */
export interface SearchPage<Item> {
  items: Item[];
  /** How many match; undefined if the server does not say, since they are many. */
  total: number | undefined;
  hasMore: boolean;
  /** For the next page, of lists that are read by cursors: what comes or goes meanwhile moves nothing. */
  cursor: string | undefined;
}

export interface ServerInfo {
  /** Its own; `version` is that of the API that clients send for. */
  threadloom_version?: string;
  langgraph_js_version?: string;
}

/**
 * What a proxy answers with 504 may have been done: asked again by the client, there are two assistants where somebody wanted one.
 * Queries, which change nothing, are asked again by react-query.
 */
const MAX_RETRIES = 0;

const BAD_GATEWAY = 502;

/**
 * As the browser's, but that a page is no answer: a proxy that wants somebody to sign in sends one with 200, and what is read of it would
 * be "Unexpected token '<'". @throws ApiError
 */
export const fetchAnswer: typeof fetch = async (input, init) => {
  const answer = await fetchWithRetry(input, init);
  // The official client keeps no headers of a refusal.
  if (retryAfterSeconds(answer) !== undefined) throw await apiErrorFrom(answer);
  if (!answer.ok || !/^text\/html\b/i.test(answer.headers.get("content-type") ?? "")) return answer;
  await answer.body?.cancel();
  throw new ApiError(
    BAD_GATEWAY,
    "A proxy answered in place of the server. Perhaps you have to sign in there.",
  );
};

const CLIENT_ERROR = /^(?:HTTP (\d+): |Protocol request failed: (\d+)[^—]*(?:— |$))([^]*)$/;

/** What Chromium, Firefox and Safari say, and the official client around it. */
const UNREACHABLE = /^(Failed to fetch|NetworkError when|Load failed|Unable to connect to LangGraph server)/;

/**
 * The server's own sentence of whatever was thrown: the official client says `HTTP 404: {"detail": …}`, or for event streaming
 * `Protocol request failed: 404 Not SearchPage — {"detail": …}`.
 */
export const messageOf = (thrown: unknown): string => {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (UNREACHABLE.test(message)) return "The server can't be reached.";
  const [, ofRequest, ofStream, text] = CLIENT_ERROR.exec(message) ?? [];
  const status = ofRequest ?? ofStream;
  return status === undefined ? message : messageIn(text ?? "", Number(status));
};

/** The HTTP status of whatever was thrown; undefined if it is none of the server's answers. */
export const statusOf = (thrown: unknown): number | undefined => {
  if (thrown instanceof ApiError) return thrown.status;
  const status = (thrown as { status?: unknown } | null)?.status;
  return typeof status === "number" ? status : undefined;
};

/** Whether it is about who calls. */
export const isAuthError = (thrown: unknown): boolean => [401, 403].includes(statusOf(thrown) ?? 0);

/** Whether the same request may do later: what the caller did wrong stays wrong, but for asking too often. */
export const isTransient = (thrown: unknown): boolean => {
  const status = statusOf(thrown);
  return status === undefined || status === 429 || status >= 500;
};

/** @throws ApiError with status 401 or 403 if these credentials don't do */
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
  await request("GET", "/console/caller");
  const info = await request<ServerInfo>("GET", "/info").catch((error: unknown) => {
    // `http.disable_meta`: nothing is said of the server.
    if (statusOf(error) === 404) return {};
    throw error;
  });
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

/** The server; within the shell, which has connected. */
export const useConnection = (): Connection => {
  const connection = useContext(ConnectionContext);
  if (connection === undefined) throw new Error("There is no connection above this component.");
  return connection;
};
