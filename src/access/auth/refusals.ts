import { HandlerRefusal, ThreadloomError } from "../../platform/domain/errors.ts";
import type { CausedByProject } from "../../platform/lib/contents.ts";

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** Headers that belong to the answer's format or the connection. */
const OWN_HEADERS = /^(content-.*|transfer-encoding|connection|keep-alive|upgrade|date|trailer)$/i;
const HEADERS_AT_MOST = 20;
const HEADER_CHARACTERS_AT_MOST = 4_000;
const FIRST_STATUS = 300;
const LAST_STATUS = 599;

/** `given`: a list of pairs, an object, or `Headers`. */
const headersOf = (given: unknown): Record<string, string> => {
  let headers: Headers;
  try {
    headers = new Headers(given as ConstructorParameters<typeof Headers>[0]);
  } catch {
    // Invalid headers must not turn a refusal into a fault.
    return {};
  }
  const accepted = [...headers].filter(
    ([name, value]) => !OWN_HEADERS.test(name) && value.length <= HEADER_CHARACTERS_AT_MOST,
  );
  return Object.fromEntries(accepted.slice(0, HEADERS_AT_MOST));
};

/**
 * Recognizes the SDK's `HTTPException` by its fields, because handlers may use another copy of the class. Undefined for
 * other errors and for statuses that grant access.
 */
export const refusalIn = (thrown: unknown): HandlerRefusal | undefined => {
  if (!isObject(thrown) || !("headers" in thrown)) return undefined;
  const { status, headers, message } = thrown;
  if (typeof status !== "number" || !Number.isInteger(status)) return undefined;
  if (status < FIRST_STATUS || status > LAST_STATUS) return undefined;
  const sentence = typeof message === "string" && message !== "" ? message : "The request was refused.";
  return new HandlerRefusal(status, sentence, headersOf(headers), { cause: thrown });
};

/** Temporary 4xx statuses: timeout, too early, too many. */
const PASSING = [408, 425, 429];

/**
 * `authenticate` threw another error than `HTTPException`, such as a library's "token expired". Open connections
 * survive one such error, because the identity provider may be unreachable.
 */
export class UnexplainedRefusal extends ThreadloomError implements CausedByProject {
  readonly causedByProject = true;
  constructor(cause: unknown) {
    super("unauthenticated", "The request could not be authenticated.", { cause });
  }
}

/** Whether the caller has lost access. Temporary refusals and faults of the project's `Auth` do not count. */
export const isLossOfAccess = (error: unknown): boolean => {
  if (error instanceof UnexplainedRefusal) return false;
  if (error instanceof HandlerRefusal) return error.status < 500 && !PASSING.includes(error.status);
  // A record that the caller may no longer see is "not found".
  return (
    error instanceof ThreadloomError && ["unauthenticated", "forbidden", "not_found"].includes(error.kind)
  );
};
