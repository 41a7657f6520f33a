import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { LRUCache } from "lru-cache";
import { HandlerRefusal, ThreadloomError, tooMany } from "../../platform/domain/errors.ts";
import { addressNameOf, type Refusals } from "./caller-limits.ts";
import { createTokenBuckets } from "./token-buckets.ts";

export interface LoginRequest {
  ip: string;
  headers: IncomingHttpHeaders;
}

export interface FailedLogins {
  /**
   * Throws `tooMany` before authentication if too many requests of this address have failed. Credentials that worked
   * recently pass, because an attacker may share the address.
   */
  assertMayTry(request: LoginRequest): void;
  succeeded(request: LoginRequest): void;
  /** Counts an error of the authentication if it is a refusal. */
  failed(request: LoginRequest, error: unknown): void;
}

export interface FailedLoginOptions {
  /** Per address; 0 means no limit. */
  perMinute: number;
  countsAddresses: boolean;
  refusals?: Pick<Refusals, "note">;
  now?: () => number;
}

const CREDENTIALS_AT_MOST = 10_000;
const REMEMBERED_MS = 10 * 60_000;
/** Headers that may hold credentials. A WebSocket may send them in its protocols. */
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
  /** Digests of credentials with the time of their last success. */
  const good = new LRUCache<string, number>({ max: CREDENTIALS_AT_MOST });
  const nameOf = ({ ip }: LoginRequest): string | undefined =>
    perMinute === 0 || !countsAddresses ? undefined : addressNameOf(ip);

  return {
    assertMayTry(request) {
      const name = nameOf(request);
      const balance = name === undefined ? undefined : buckets.peek(name, perMinute);
      if (balance?.isRefused !== true) return;
      if ((good.peek(digestOf(request.headers)) ?? Number.NEGATIVE_INFINITY) > now() - REMEMBERED_MS) return;
      refusals?.note("failed_logins", name);
      throw tooMany(
        `At most ${perMinute} requests with wrong credentials of one address are taken in a minute; try again later.`,
        balance.retrySeconds,
      );
    },

    succeeded(request) {
      if (nameOf(request) === undefined) return;
      good.set(digestOf(request.headers), now());
    },

    failed(request, error) {
      const name = nameOf(request);
      if (name !== undefined && isRefusal(error)) buckets.charge(name, perMinute, 1);
    },
  };
};
