import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { HandlerRefusal, ThreadloomError, tooMany } from "../../platform/domain/errors.ts";
import { addressNameOf } from "./counted-callers.ts";
import type { Refusals } from "./refusals.ts";
import { createTokenBuckets } from "./token-buckets.ts";

/** A request before anybody knows whose it is. */
export interface LoginRequest {
  ip: string;
  headers: IncomingHttpHeaders;
}

/** How often somebody may show wrong credentials, or none. */
export interface FailedLogins {
  /**
   * Throws `tooMany` where too many have failed from this address; before anybody is asked, who would have work with it. Who
   * was let in lately with these credentials goes on: behind one address there may be many, and one of them who guesses.
   */
  assertMayTry(request: LoginRequest): void;
  succeeded(request: LoginRequest): void;
  /** Counts an error of the authentication, if it refuses somebody. */
  failed(request: LoginRequest, error: unknown): void;
}

export interface FailedLoginOptions {
  /** Of an address; 0: no limit. */
  perMinute: number;
  /** Whether addresses say who is who. */
  countsAddresses: boolean;
  refusals?: Pick<Refusals, "note">;
  now?: () => number;
}

const CREDENTIALS_AT_MOST = 10_000;
const REMEMBERED_MS = 10 * 60_000;
/** Where a request may say who sends it; of a WebSocket also its protocols. */
const SAID_IN = ["authorization", "x-api-key", "cookie", "sec-websocket-protocol"] as const;

const digestOf = (headers: IncomingHttpHeaders): string =>
  createHash("sha256")
    .update(JSON.stringify(SAID_IN.map((name) => headers[name] ?? null)))
    .digest("base64");

const isRefusal = (error: unknown): boolean =>
  error instanceof HandlerRefusal
    ? error.status === 401 || error.status === 403
    : error instanceof ThreadloomError && (error.kind === "unauthenticated" || error.kind === "forbidden");

export const createFailedLogins = ({
  perMinute,
  countsAddresses,
  refusals,
  now = () => performance.now(),
}: FailedLoginOptions): FailedLogins => {
  const buckets = createTokenBuckets({ now });
  /** Digests of credentials and when they were good last, in that order. */
  const good = new Map<string, number>();
  const nameOf = ({ ip }: LoginRequest): string | undefined =>
    perMinute === 0 || !countsAddresses ? undefined : addressNameOf(ip);

  return {
    assertMayTry(request) {
      const name = nameOf(request);
      const balance = name === undefined ? undefined : buckets.peek(name, perMinute);
      if (balance?.isRefused !== true) return;
      if ((good.get(digestOf(request.headers)) ?? Number.NEGATIVE_INFINITY) > now() - REMEMBERED_MS) return;
      refusals?.note("failed_logins", name);
      throw tooMany(
        `At most ${perMinute} requests with wrong credentials of one address are taken in a minute; try again later.`,
        balance.retrySeconds,
      );
    },

    succeeded(request) {
      if (nameOf(request) === undefined) return;
      const digest = digestOf(request.headers);
      good.delete(digest);
      if (good.size >= CREDENTIALS_AT_MOST)
        for (const oldest of good.keys()) {
          good.delete(oldest);
          break;
        }
      good.set(digest, now());
    },

    failed(request, error) {
      const name = nameOf(request);
      if (name !== undefined && isRefusal(error)) buckets.charge(name, perMinute, 1);
    },
  };
};
