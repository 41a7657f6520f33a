import { expect } from "vitest";
import { feature } from "../compatibility/feature.ts";
import { operations, violationsOf, type Operation } from "./contract.ts";
import { DIFFERENCES, NOT_YET, type Difference } from "./differences.ts";
import { MISSING, type Wire, type WireAnswer } from "./wire.ts";

/** Requests that cause an answer, by its status in the contract. Each one prepares its own data. */
export type Cases = Record<string, Record<string, () => Promise<WireAnswer>>>;

/** The section of docs/compatibility.md with the operations of a path. */
const tableOf = (path: string): string => {
  if (/^\/(mcp|a2a)\//.test(path)) return "MCP and A2A";
  if (/\/crons/.test(path)) return "Crons";
  if (/^\/threads\/\{thread_id\}\/(stream|commands)/.test(path)) return "Streams of threads";
  if (/\/runs(\/|$)/.test(path)) return "Runs";
  return /^\/(assistants|threads|store)/.exec(path)?.[1]?.replace(/^./, (c) => c.toUpperCase()) ?? "Server";
};

const isSuccess = (status: string): boolean => status.startsWith("2");

/** Each status of the contract, but only the first success: a cell of its own for `202` would add nothing. */
const statusesOf = ({ described }: Operation): string[] => {
  const statuses = Object.keys(described.responses).sort();
  return statuses.filter((status, index) => !isSuccess(status) || index === 0);
};

const differenceOf = (operation: Operation, status: string): Difference | undefined =>
  DIFFERENCES.find(
    (difference) => difference.status === status && difference.operations.includes(operation.name),
  );

const LINE = /^(|:.*|event: \S+|id: \S+|data: .+)$/;

/** Server-sent events that every decoder accepts: one line of strict JSON each. */
const expectEvents = (text: string): void => {
  const lines = text.split("\n");
  expect(lines.filter((line) => !LINE.test(line))).toEqual([]);
  for (const line of lines) if (line.startsWith("data: ")) JSON.parse(line.slice("data: ".length));
};

/** The answer matches the contract except for the named difference, which must exist. */
const expectAsInContract = (
  operation: Operation,
  status: string,
  answer: WireAnswer,
  difference: Difference | undefined,
): void => {
  expect({ status: String(answer.status), text: answer.text.slice(0, 500) }).toEqual({
    status: difference?.answers ?? status,
    text: expect.any(String),
  });
  if (!isSuccess(String(answer.status))) {
    const sentence = expect.stringMatching(/^[A-Z'].*\.$/s);
    const isJsonRpc = typeof answer.body === "object" && answer.body !== null && "jsonrpc" in answer.body;
    const error = { code: expect.any(Number), message: sentence };
    expect(answer.body).toEqual(
      isJsonRpc ? { jsonrpc: "2.0", id: null, error: expect.objectContaining(error) } : { detail: sentence },
    );
  }
  const headers = Object.keys(operation.described.responses[status]?.headers ?? {});
  expect(headers.filter((header) => !answer.headers.has(header))).toEqual([]);
  if (answer.contentType.startsWith("text/event-stream")) expectEvents(answer.text);
  if (answer.status === 204) expect(answer.text).toBe("");
  const violations = difference?.answers === undefined ? violationsOf(operation, status, answer) : [];
  expect(violations).toEqual(difference?.violations ?? []);
};

/** An operation that is not implemented answers like any unknown path. */
const expectNoRoute = async ({ method, path }: Operation, send: Wire["send"]): Promise<void> => {
  const answer = await send(`${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, MISSING)}`);
  expect([answer.status, answer.body]).toEqual([
    404,
    { detail: expect.stringMatching(/^There is no route/) },
  ]);
};

/**
 * One test for each status that the contract documents for the operations of a table. Each needs its case, also those that are not
 * implemented yet.
 */
export const testOperations = (name: string, { send }: Wire, cases: Cases): void => {
  const mine = operations.filter(({ path }) => tableOf(path) === name);
  const unknown = Object.keys(cases).filter((key) => !mine.some((operation) => operation.name === key));
  if (unknown.length > 0) throw new Error(`${unknown.join(", ")} is no operation of '${name}'.`);
  for (const operation of mine) {
    const notYet = NOT_YET.find(({ pattern }) => pattern.test(operation.path))?.because;
    for (const status of statusesOf(operation)) {
      const difference = differenceOf(operation, status);
      feature(
        {
          table: `Operations: ${name}`,
          row: operation.name,
          column: isSuccess(status) ? "success" : status,
          differs: notYet === undefined ? difference?.because : undefined,
          notYet,
        },
        async () => {
          if (notYet !== undefined) return await expectNoRoute(operation, send);
          const provoke = cases[operation.name]?.[status];
          if (provoke === undefined) throw new Error(`${operation.name} has no case for ${status}.`);
          expectAsInContract(operation, status, await provoke(), difference);
        },
      );
    }
  }
};
