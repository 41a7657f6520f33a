import { lookup, Resolver } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { LATE_ANSWER } from "../../engine/outbox/dispatcher.ts";
import { sqlState } from "../../platform/domain/errors.ts";
import { hostOf } from "./url-rules.ts";

export interface ResolvedAddress {
  address: string;
  family: 4 | 6;
}

/** Rejects without addresses. */
export type ResolveName = (name: string) => Promise<ResolvedAddress[]>;

const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;

/**
 * `internal`: only the operating system knows names of the private network. Its look-ups hold one of the process's four
 * threads each, so public names are resolved by plain DNS.
 */
export const createResolveName = (internal: boolean): ResolveName => {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (internal) return async (name) => (await lookup(name, { all: true })) as ResolvedAddress[];
  return async (name) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found: ResolvedAddress[] = [];
    if (v4.status === "fulfilled")
      found.push(...v4.value.map((address) => ({ address, family: 4 as const })));
    if (v6.status === "fulfilled")
      found.push(...v6.value.map((address) => ({ address, family: 6 as const })));
    if (found.length === 0) throw v4.status === "rejected" ? v4.reason : new Error("no address");
    return found;
  };
};

export interface Post {
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** See url-rules.ts; undefined for the server's own address, which callers can't choose. */
  refusalOf?: ((address: string) => string | undefined) | undefined;
  resolveName: ResolveName;
  /** For all steps together. */
  timeoutMs: number;
  signal: AbortSignal;
}

export type PostResult =
  | { kind: "answered"; status: number; retryAfter: number | undefined }
  /** `reason` has no text of the receiver. */
  | { kind: "unanswered"; reason: string }
  | { kind: "aborted" };

/** More of the answer's body is not read. */
const BODY_BYTES_AT_MOST = 16_384;
/** For the rest of an answer after its status. */
const BODY_MS_AT_MOST = 2_000;

/** No connection was opened. */
class RefusedAddressError extends Error {}

const CLOSED = "The receiver closed the connection before it answered.";
const UNREACHABLE = "The receiver can't be reached.";
const UNKNOWN = "The name of the receiver is not known.";
const REASONS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "The receiver refused the connection."],
  ...["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].map((code) => [code, CLOSED] as const),
  ...["EHOSTUNREACH", "ENETUNREACH"].map((code) => [code, UNREACHABLE] as const),
  ...["ENOTFOUND", "ENODATA"].map((code) => [code, UNKNOWN] as const),
  ...["ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT"].map((code) => [code, LATE_ANSWER] as const),
]);

/** Certificate errors of OpenSSL and Node. */
const CERTIFICATE = /CERT|TLS|SSL|ISSUER|LEAF_SIGNATURE|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|CRL_/;

const reasonOf = (error: unknown): string => {
  if (error instanceof RefusedAddressError) return error.message;
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [error];
  const code = sqlState(first) ?? "";
  const { name, message } = first as Error;
  if (name === "HTTPParserError" || name === "HeadersOverflowError" || message === "bad upgrade")
    return "The receiver's answer is no HTTP answer.";
  const known = REASONS.get(code);
  if (known !== undefined) return known;
  if (CERTIFICATE.test(code)) return `The receiver's certificate is refused (${code}).`;
  return /^[A-Z_0-9]{1,40}$/.test(code) ? `The request failed (${code}).` : "The request failed.";
};

/**
 * Connects only to a checked address, because a name may get another address after the check. One forbidden address
 * refuses the name.
 */
const checkedLookup =
  ({ resolveName, refusalOf }: Post): LookupFunction =>
  (name, { all }, callback) => {
    resolveName(name).then(
      (found) => {
        const refusal = found.map(({ address }) => refusalOf?.(address)).find((each) => each !== undefined);
        if (refusal !== undefined) callback(new RefusedAddressError(`'${name}' stands for ${refusal}.`), []);
        else if (all === true) callback(null, found);
        else callback(null, found[0]?.address ?? "", found[0]?.family);
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, []),
    );
  };

/** undici takes no credentials from the address. */
const credentialsOf = ({ url, headers }: Post): { authorization?: string } => {
  const { username, password } = url;
  if (username === "" && password === "") return {};
  if (Object.keys(headers).some((name) => name.toLowerCase() === "authorization")) return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
};

/** Follows no redirects. Never rejects. */
export const post = async (options: Post): Promise<PostResult> => {
  const { url, headers, body, refusalOf, timeoutMs } = options;
  const { Agent, request } = await import("undici");
  // No connection is kept, so that each one is checked. An own agent ignores the process's proxy and TLS settings.
  const dispatcher = new Agent({
    pipelining: 0,
    connect: { rejectUnauthorized: true, ...(refusalOf && { lookup: checkedLookup(options) }) },
  });
  const late = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([options.signal, late]);
  try {
    const host = hostOf(url);
    // If the host is an address, the socket calls no lookup.
    const refusal = isIP(host) === 0 ? undefined : refusalOf?.(host);
    if (refusal !== undefined) throw new RefusedAddressError(`'${host}' is ${refusal}.`);
    const response = await request(url, {
      method: "POST",
      headers: { ...credentialsOf(options), ...headers },
      body,
      dispatcher,
      signal,
    });
    // Seconds; dates are ignored, because clocks differ.
    const retryAfter = String(response.headers["retry-after"] ?? "");
    // Receivers that write after their status must not find a closed connection.
    const rest = AbortSignal.any([options.signal, AbortSignal.timeout(Math.min(BODY_MS_AT_MOST, timeoutMs))]);
    await response.body.dump({ limit: BODY_BYTES_AT_MOST, signal: rest }).catch(() => undefined);
    return {
      kind: "answered",
      status: response.statusCode,
      retryAfter: /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined,
    };
  } catch (error) {
    if (options.signal.aborted) return { kind: "aborted" };
    return { kind: "unanswered", reason: late.aborted ? LATE_ANSWER : reasonOf(error) };
  } finally {
    void dispatcher.destroy().catch(() => undefined);
  }
};
