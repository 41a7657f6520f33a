import { HandlerRefusal, ThreadloomError } from "../../platform/domain/errors.ts";
import type { CausedByProject } from "../../platform/lib/contents.ts";

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** Of the answer's own form, or of the connection: not a handler's to say. */
const OWN_HEADERS = /^(content-.*|transfer-encoding|connection|keep-alive|upgrade|date|trailer)$/i;
const HEADERS_AT_MOST = 20;
const HEADER_CHARACTERS_AT_MOST = 4_000;
const FIRST_STATUS = 300;
const LAST_STATUS = 599;

/** What comes back as headers may be a list of pairs, an object, or `Headers`. */
const headersOf = (given: unknown): Record<string, string> => {
  let headers: Headers;
  try {
    headers = new Headers(given as ConstructorParameters<typeof Headers>[0]);
  } catch {
    // A refusal stays one, though nobody can be told its headers.
    return {};
  }
  const told = [...headers].filter(
    ([name, value]) => !OWN_HEADERS.test(name) && value.length <= HEADER_CHARACTERS_AT_MOST,
  );
  return Object.fromEntries(told.slice(0, HEADERS_AT_MOST));
};

/**
 * The SDK's `HTTPException`, whichever copy of it a handler has thrown: known by its `status` and `headers`. Undefined for
 * anything else, and for a status that would let somebody in.
 */
export const refusalIn = (thrown: unknown): HandlerRefusal | undefined => {
  if (!isObject(thrown) || !("headers" in thrown)) return undefined;
  const { status, headers, message } = thrown;
  if (typeof status !== "number" || !Number.isInteger(status)) return undefined;
  if (status < FIRST_STATUS || status > LAST_STATUS) return undefined;
  const sentence = typeof message === "string" && message !== "" ? message : "The request was refused.";
  return new HandlerRefusal(status, sentence, headersOf(headers), { cause: thrown });
};

/** Too early, too slow, too often: statuses of 4xx that pass. */
const PASSING = [408, 425, 429];

/**
 * `authenticate` threw what is no `HTTPException`. A request is refused like any other that nobody vouches for: a library that finds
 * a token expired throws none. But it may as well be an identity provider that can't be reached, so nobody who is known loses access by
 * one of them; see reauthorization/rounds.ts.
 */
export class UnexplainedRefusal extends ThreadloomError implements CausedByProject {
  readonly causedByProject = true;
  constructor(cause: unknown) {
    super("unauthenticated", "The request could not be authenticated.", { cause });
  }
}

/** Whether somebody is refused for what he is, and not for the moment. */
export const isLossOfAccess = (error: unknown): boolean => {
  if (error instanceof UnexplainedRefusal) return false;
  if (error instanceof HandlerRefusal) return error.status < 500 && !PASSING.includes(error.status);
  return (
    error instanceof ThreadloomError && ["unauthenticated", "forbidden", "not_found"].includes(error.kind)
  );
};
