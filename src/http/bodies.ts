import type { FastifyInstance } from "fastify";
import { invalid, malformed } from "../lib/errors.ts";

/**
 * Nesting that a body may have. `JSON.parse` takes millions of levels, but `JSON.stringify` overflows the stack
 * at about 5,000 and `jsonb` fails at 50,000: such a value could be taken in and never be given back.
 */
const NESTING_AT_MOST = 500;

const JSON_TYPE = "application/json";

/** Characters of a parser's complaint that are passed on; it quotes the body. */
const COMPLAINT_AT_MOST = 200;

const QUOTE = 34;
const BACKSLASH = 92;
const OPENING = new Set([91, 123]);
const CLOSING = new Set([93, 125]);

/** The position of the quote that ends the string which starts at `start`, or the end of the text. */
const endOfString = (text: string, start: number): number => {
  let end = start;
  do {
    end = text.indexOf('"', end + 1);
    if (end === -1) return text.length;
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  } while (end < text.length);
  return end;
};

/**
 * Before parsing, because parsing is what costs: a million levels take `JSON.parse` 130 to 270 ms, this gives up
 * after the 501st bracket. An honest body of 100 KB takes it 0.1 ms.
 */
const assertShallow = (text: string): void => {
  if (text.length <= NESTING_AT_MOST) return;
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) index = endOfString(text, index);
    else if (OPENING.has(code)) {
      depth += 1;
      if (depth > NESTING_AT_MOST) throw invalid(`The body is nested deeper than ${NESTING_AT_MOST} levels.`);
    } else if (CLOSING.has(code)) depth -= 1;
  }
};

/**
 * Refuses what parses and yet can't be kept: a number beyond the range (1e400 is Infinity, which JSON can't
 * say), and a key `__proto__`, which is an ordinary key after parsing but becomes the prototype at the first
 * `Object.assign`, in a graph of our users for instance. Recursive, since the nesting is known to be small.
 */
const assertStorable = (value: unknown): void => {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw invalid("The body holds a number that is out of range.");
  } else if (Array.isArray(value)) {
    for (const item of value) if (typeof item === "object" || typeof item === "number") assertStorable(item);
  } else if (typeof value === "object" && value !== null) {
    for (const key in value) {
      if (key === "__proto__") throw invalid("The body holds the key '__proto__', which is refused.");
      const item = (value as Record<string, unknown>)[key];
      if (typeof item === "object" || typeof item === "number") assertStorable(item);
    }
  }
};

const parseBody = (text: string): unknown => {
  if (text.trim() === "") return undefined;
  assertShallow(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const complaint = (error as Error).message.replace(/ is not valid JSON$/, "").slice(0, COMPLAINT_AT_MOST);
    throw malformed(`The body is not valid JSON: ${complaint}.`, error);
  }
  assertStorable(value);
  return value;
};

/**
 * Bodies are JSON whatever their content type says: Studio and proxies send `text/plain`, and body-less POSTs
 * come with any type or none. An empty body is `undefined`.
 */
export const acceptBodies = (app: FastifyInstance): void => {
  // Fastify answers 415 to a type that it can't read, an empty one for instance, before any parser is asked.
  app.addHook("onRequest", (request, _reply, done) => {
    if (request.headers["content-type"] !== undefined) request.headers["content-type"] = JSON_TYPE;
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => {
    try {
      done(null, parseBody(body as string));
    } catch (error) {
      done(error as Error, undefined);
    }
  });
};
