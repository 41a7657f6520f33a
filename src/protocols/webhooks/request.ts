import {
  Agent as HttpAgent,
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { sqlState } from "../../platform/domain/errors.ts";
import { LATE_ANSWER } from "../../engine/outbox/tries.ts";
import { hostOf } from "./url-rules.ts";
import type { ResolveName } from "./names.ts";

export interface Post {
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** See addresses.ts; undefined for the server's own address, which callers can't choose. */
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

const REASONS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "The receiver refused the connection."],
  ["ECONNRESET", "The receiver closed the connection before it answered."],
  ["EPIPE", "The receiver closed the connection before it answered."],
  ["EHOSTUNREACH", "The receiver can't be reached."],
  ["ENETUNREACH", "The receiver can't be reached."],
  ["ETIMEDOUT", LATE_ANSWER],
  ["ENOTFOUND", "The name of the receiver is not known."],
  ["ENODATA", "The name of the receiver is not known."],
]);

/** Certificate errors of OpenSSL and Node. */
const CERTIFICATE = /CERT|TLS|SSL|ISSUER|LEAF_SIGNATURE|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|CRL_/;

const reasonOf = (error: unknown): string => {
  if (error instanceof RefusedAddressError) return error.message;
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [error];
  const code = sqlState(first) ?? "";
  const known = REASONS.get(code);
  if (known !== undefined) return known;
  if (CERTIFICATE.test(code)) return `The receiver's certificate is refused (${code}).`;
  if (code.startsWith("HPE_")) return `The receiver's answer is no HTTP (${code}).`;
  return /^[A-Z_0-9]{1,40}$/.test(code) ? `The request failed (${code}).` : "The request failed.";
};

/** Seconds; dates are ignored, because clocks differ. */
const retryAfterOf = ({ headers }: IncomingMessage): number | undefined => {
  const text = headers["retry-after"] ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
};

/**
 * Connects only to a checked address, because a name may get another address after the check. One forbidden address
 * refuses the name.
 */
const checkedLookup =
  (resolveName: ResolveName, refusalOf: NonNullable<Post["refusalOf"]>): LookupFunction =>
  (name, options, callback) => {
    resolveName(name).then(
      (found) => {
        for (const { address } of found) {
          const refusal = refusalOf(address);
          if (refusal !== undefined)
            return callback(new RefusedAddressError(`'${name}' stands for ${refusal}.`), []);
        }
        const [first] = found;
        if (options.all === true) callback(null, found);
        else callback(null, first?.address ?? "", first?.family);
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, []),
    );
  };

const open = ({ url, headers, body, refusalOf, resolveName }: Post): ClientRequest => {
  const secure = url.protocol === "https:";
  const host = hostOf(url);
  // If the host is an address, the socket calls no lookup.
  const refusal = isIP(host) === 0 ? undefined : refusalOf?.(host);
  if (refusal !== undefined) throw new RefusedAddressError(`'${host}' is ${refusal}.`);
  const options = {
    method: "POST",
    headers: { ...headers, "content-length": String(body.length) },
    // No connection is kept, so that each one is checked. An own agent ignores the process's proxy settings.
    agent: secure ? new HttpsAgent({ keepAlive: false }) : new HttpAgent({ keepAlive: false }),
    ...(refusalOf === undefined ? {} : { lookup: checkedLookup(resolveName, refusalOf) }),
  };
  return secure ? httpsRequest(url, { ...options, rejectUnauthorized: true }) : httpRequest(url, options);
};

/** Follows no redirects. Never rejects. */
export const post = (options: Post): Promise<PostResult> =>
  new Promise((resolve) => {
    const { body, timeoutMs, signal } = options;
    let request: ClientRequest | undefined;
    let answered: PostResult | undefined;
    const settle = (result: PostResult): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      request?.destroy();
      resolve(result);
    };
    const abort = (): void => settle(answered ?? { kind: "aborted" });
    const late = (): void => settle(answered ?? { kind: "unanswered", reason: LATE_ANSWER });
    let timer = setTimeout(late, timeoutMs);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort);
    try {
      request = open(options);
      // A destroyed socket may emit an error after the result.
      request.on("error", (error) => settle(answered ?? { kind: "unanswered", reason: reasonOf(error) }));
      request.on("response", (response) => {
        answered = {
          kind: "answered",
          status: response.statusCode ?? 0,
          retryAfter: retryAfterOf(response),
        };
        clearTimeout(timer);
        timer = setTimeout(late, Math.min(BODY_MS_AT_MOST, timeoutMs));
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > BODY_BYTES_AT_MOST) late();
        });
        response.on("end", late);
        response.on("error", late);
        response.on("close", late);
      });
      request.on("upgrade", (_response, socket) => {
        socket.destroy();
        settle({ kind: "unanswered", reason: "The receiver's answer is no HTTP answer." });
      });
      request.end(body);
    } catch (error) {
      settle({ kind: "unanswered", reason: reasonOf(error) });
    }
  });
