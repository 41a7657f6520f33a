import type { FastifyInstance } from "fastify";
import { invalid, malformed } from "../lib/errors.ts";

/**
 * Nesting that a body may have. `JSON.parse` takes millions of levels, but `JSON.stringify` overflows the stack
 * at about 5,000 and `jsonb` fails at 50,000: such a value could be taken in and never be given back.
 */
const NESTING_AT_MOST = 500;

/** Refuses what parses and yet can't be stored: too deep, or a number beyond the range (1e400 is Infinity). */
const assertStorable = (root: unknown): void => {
  let level: unknown[] = [root];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > NESTING_AT_MOST) throw invalid(`The body is nested deeper than ${NESTING_AT_MOST} levels.`);
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === "number" && !Number.isFinite(value)) {
        throw invalid("The body holds a number that is out of range.");
      }
      if (typeof value !== "object" || value === null) continue;
      for (const item of Array.isArray(value) ? (value as unknown[]) : Object.values(value)) {
        if (typeof item === "object" || typeof item === "number") next.push(item);
      }
    }
    level = next;
  }
};

const parseBody = (text: string): unknown => {
  if (text.trim() === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw malformed(
      `The body is not valid JSON: ${(error as Error).message.replace(/^[^:]*JSON\.parse: /, "")}.`,
    );
  }
  // As text, because a parsed `__proto__` is an own key that looks like any other; Object.assign makes it live.
  if (text.includes('"__proto__"') || text.includes("\\u005f\\u005fproto")) {
    throw invalid("The body holds the key '__proto__', which is refused.");
  }
  assertStorable(value);
  return value;
};

/**
 * Bodies are JSON whatever their content type says: Studio and proxies send `text/plain`, and body-less POSTs
 * come with any type or none. An empty body is `undefined`.
 */
export const acceptBodies = (app: FastifyInstance): void => {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => {
    try {
      done(null, parseBody(body as string));
    } catch (error) {
      done(error as Error, undefined);
    }
  });
};
