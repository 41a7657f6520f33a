import { Agent, request as httpRequest } from "node:http";
import { withOddValues } from "./odd-values.ts";
import type { Operation, RunOptions } from "./operations.ts";
import { answersById, KEEPER, placeIn, type Outcome, type Side } from "./side.ts";
import { seenOf, type Address, type StateJson } from "./views.ts";

interface Answer {
  status: number;
  body: unknown;
}

export type Send = (server: number, method: string, path: string, body?: unknown) => Promise<Answer>;

/** Cheaper than `fetch`: a history takes about a hundred requests. */
export const createSend = (urls: readonly string[]): { send: Send; close(): void } => {
  const agent = new Agent({ keepAlive: true });
  const send: Send = (server, method, path, body) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const url = `${urls[server % urls.length] ?? ""}${path}`;
      const headers = text === undefined ? {} : { "content-type": "application/json" };
      const request = httpRequest(url, { method, agent, headers }, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("error", reject);
        response.on("end", () => {
          const answer = Buffer.concat(parts).toString().trim();
          try {
            const parsed = answer === "" ? undefined : (JSON.parse(answer) as unknown);
            resolve({ status: response.statusCode ?? 0, body: parsed });
          } catch (error) {
            reject(error as Error);
          }
        });
      });
      request.on("error", reject);
      request.end(text);
    });
  return { send, close: () => agent.destroy() };
};

/** The server answers what no caller can mend, so the history ends. */
export class ServerFault extends Error {
  override readonly name = "ServerFault";
}

const detailOf = (body: unknown): string =>
  typeof body === "object" && body !== null && "detail" in body ? String(body.detail) : JSON.stringify(body);

export interface ServerSide extends Side {
  /** What the thread's record says of its newest state. */
  record(reader: number): Promise<ThreadView>;
}

export interface ThreadView {
  status: string;
  values: unknown;
  /** In any order: they are stored by task. */
  interrupts: unknown[];
}

/** Two servers on one database. */
export const createServerSide = (send: Send): ServerSide => {
  const former: string[] = [];
  let threadId = "";
  let graph = "";

  const must = async (server: number, method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await send(server, method, path, body);
    if (answer.status >= 300)
      throw new ServerFault(
        `${answer.status} for ${method} ${path.replace(threadId, "{id}")}: ${detailOf(answer.body)}`,
      );
    return answer.body;
  };
  const accepted = (answer: Answer): Outcome => {
    if (answer.status >= 500) throw new ServerFault(`${answer.status}: ${detailOf(answer.body)}`);
    return answer.status >= 300 ? { kind: "refused", why: detailOf(answer.body) } : { kind: "done" };
  };

  const head = async (reader: number, thread = threadId) =>
    seenOf((await must(reader, "GET", `/threads/${thread}/state?subgraphs=true`)) as StateJson);
  const at = async (reader: number, id: string) =>
    seenOf((await must(reader, "GET", `/threads/${threadId}/state/${id}?subgraphs=true`)) as StateJson);
  const read = async (reader: number, id: string | undefined) =>
    id === undefined ? await head(reader) : await at(reader, id);

  const subgraphAt = async (reader: number, number: number, id: string | undefined, own: boolean) => {
    const { subgraphs } = await read(reader, id);
    const all: Address[] = [...subgraphs, ...(own && graph === "nest" ? [{ checkpoint_ns: KEEPER }] : [])];
    return all[number % Math.max(all.length, 1)];
  };

  const run = async (
    what: object,
    { server, durability, before, after, failing }: RunOptions & Pick<Operation, "server">,
  ): Promise<Outcome> => {
    const answer = await send(server, "POST", `/threads/${threadId}/runs/wait`, {
      assistant_id: graph,
      config: { configurable: { failing: failing ?? false } },
      ...(durability === undefined ? {} : { durability }),
      ...(before === undefined ? {} : { interrupt_before: before }),
      ...(after === undefined ? {} : { interrupt_after: after }),
      ...what,
    });
    if (answer.status >= 300) return accepted(answer);
    const isObject = typeof answer.body === "object" && answer.body !== null && !Array.isArray(answer.body);
    const {
      __error__: error,
      __interrupt__: interrupts = [],
      ...values
    } = (isObject ? answer.body : { values: answer.body }) as {
      __error__?: { message: string };
      __interrupt__?: { value?: unknown }[];
    };
    if (error !== undefined) return { kind: "failed", message: error.message };
    return { kind: "values", values, interrupts: interrupts.map(({ value }) => value ?? null) };
  };

  return {
    async begin(history) {
      graph = history.graph;
      const supersteps = history.supersteps.map((updates) => ({
        updates: updates.map(({ values, as }) => ({ values: withOddValues(values), as_node: as })),
      }));
      const answer = await send(0, "POST", "/threads", {
        metadata: { graph_id: graph },
        ...(supersteps.length === 0 ? {} : { supersteps }),
      });
      const outcome = accepted(answer);
      threadId =
        outcome.kind === "done"
          ? (answer.body as { thread_id: string }).thread_id
          : ((await must(0, "POST", "/threads", { metadata: { graph_id: graph } })) as { thread_id: string })
              .thread_id;
      return outcome;
    },

    async perform(operation, places) {
      const { server } = operation;
      const id = placeIn(places, "at" in operation ? operation.at : undefined);
      const from = id === undefined ? {} : { checkpoint_id: id };
      switch (operation.do) {
        case "run":
          return await run({ input: withOddValues(operation.input), ...from }, operation);
        case "resume": {
          const { ids, count, answers } = operation;
          const { interruptIds } = await read(server, id);
          if (interruptIds.length === 0) return { kind: "skipped" };
          const resume = ids ? answersById(interruptIds, count, answers) : answers[0];
          return await run({ command: { resume }, ...from }, operation);
        }
        case "command": {
          const { update, goto, send: sends } = operation;
          const places = goto?.map((node) => (sends ? { node, input: {} } : node));
          const command = {
            ...(update === undefined ? {} : { update: withOddValues(update) }),
            ...(places === undefined ? {} : { goto: places }),
          };
          return await run({ command, ...from }, operation);
        }
        case "run in subgraph": {
          const checkpoint = await subgraphAt(server, operation.subgraph, id, false);
          if (checkpoint?.checkpoint_id === undefined) return { kind: "skipped" };
          return await run({ input: withOddValues(operation.input), checkpoint }, operation);
        }
        case "update":
        case "update subgraph": {
          const checkpoint =
            operation.do === "update" ? from : await subgraphAt(server, operation.subgraph, id, true);
          if (checkpoint === undefined) return { kind: "skipped" };
          return accepted(
            await send(server, "POST", `/threads/${threadId}/state`, {
              values: withOddValues(operation.values),
              checkpoint,
              ...(operation.as === undefined ? {} : { as_node: operation.as }),
            }),
          );
        }
        case "copy": {
          const thread = (await must(server, "POST", `/threads/${threadId}/copy`)) as { thread_id: string };
          former.push(threadId);
          threadId = thread.thread_id;
          return { kind: "done" };
        }
        case "prune":
          await must(server, "POST", "/threads/prune", { thread_ids: [threadId], strategy: "keep_latest" });
          return { kind: "done" };
      }
    },

    head,
    at,

    async record(reader) {
      const { status, values, interrupts } = (await must(reader, "GET", `/threads/${threadId}`)) as {
        status: string;
        values: unknown;
        interrupts: Record<string, { value?: unknown }[]>;
      };
      const questions = Object.values(interrupts).flat();
      return { status, values, interrupts: questions.map(({ value }) => value ?? null) };
    },

    async history(reader, limit, namespace) {
      const checkpoint = namespace === undefined ? {} : { checkpoint: { checkpoint_ns: namespace } };
      const states = await must(reader, "POST", `/threads/${threadId}/history`, { limit, ...checkpoint });
      return (states as StateJson[]).map(seenOf);
    },

    copied: async (reader) => await Promise.all(former.map((thread) => head(reader, thread))),

    async end() {
      for (const thread of [...former, threadId]) await send(0, "DELETE", `/threads/${thread}`);
    },
  };
};
