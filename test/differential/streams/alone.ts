/** The streams of a case by LangGraph alone, in the form in which the server should send them. */
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { Command, MemorySaver } from "@langchain/langgraph";
import { newId } from "../../../src/platform/lib/ids.ts";
import { toWireJson } from "../../../src/state/values/wire-json.ts";
import type { Mode, StreamCase } from "./case.ts";
import { drawnGraph } from "./graph.ts";

/** An event's name and data. */
export type Told = [event: string, data: unknown];

/** What a run is given, as a request names it. */
export interface Given {
  input?: unknown;
  command?: { resume?: unknown; update?: Record<string, unknown> };
}

type Chunk = [namespace: string[], mode: string, payload: unknown];

interface MessageLike {
  id?: string;
  concat?: (other: unknown) => MessageLike;
}

const wire = (value: unknown): unknown => JSON.parse(toWireJson(value)) as unknown;

/** Configurations hold the saver and functions; the tests of the modes compare what the server shows of them. */
const withoutConfigurations = (payload: unknown): unknown => {
  const { config, parentConfig, tasks, ...rest } = payload as Record<string, unknown> & { tasks: object[] };
  void [config, parentConfig];
  return { ...rest, tasks: tasks.map((task) => ({ ...task, state: undefined })) };
};

const shown = (mode: string, payload: unknown): unknown => {
  if (mode === "checkpoints") return wire(withoutConfigurations(payload));
  const { type, payload: inner } = (payload ?? {}) as { type?: unknown; payload?: unknown };
  if (mode === "debug" && type === "checkpoint")
    return wire({ ...(payload as object), payload: withoutConfigurations(inner) });
  return wire(payload);
};

/** The mode `messages` of the first SDKs, which LangGraph does not have. */
const createGrowing = (tell: (...told: Told) => void) => {
  const growing = new Map<string, MessageLike>();
  const introduced = new Set<string>();
  const complete = new Set<string>();
  return {
    add([message, metadata]: [MessageLike, unknown]): void {
      const { id } = message;
      if (id === undefined) return;
      if (!introduced.has(id)) tell("messages/metadata", wire({ [id]: { metadata } }));
      introduced.add(id);
      if (message.concat !== undefined) {
        const grown = growing.get(id)?.concat?.(message) ?? message;
        growing.set(id, grown);
        tell("messages/partial", wire([grown]));
      } else if (!complete.has(id)) {
        complete.add(id);
        tell("messages/complete", wire([message]));
      }
    },
    finish(values: unknown): void {
      const { messages = [] } = (values ?? {}) as { messages?: MessageLike[] };
      const finished = messages.filter(({ id }) => id !== undefined && !complete.has(id));
      for (const { id = "" } of finished) complete.add(id);
      if (finished.length > 0) tell("messages/complete", wire(finished));
    },
  };
};

const HIDDEN = "langsmith:hidden";

/** LangChain writes message and stack; the server sends name and message, so that callers see no paths. */
const withoutStack = (data: Record<string, unknown>): Record<string, unknown> =>
  typeof data["error"] === "string"
    ? { ...data, error: /\n\n(.*?)\n\s+at /s.exec(data["error"])?.[1] ?? data["error"] }
    : data;

/**
 * Waits for a turn of the event loop as savers with a database do. Otherwise LangGraph drops what it streamed at the moment of a failure.
 */
class WaitingSaver extends MemorySaver {
  override async put(...given: Parameters<MemorySaver["put"]>): ReturnType<MemorySaver["put"]> {
    await new Promise((resolve) => setImmediate(resolve));
    return await super.put(...given);
  }

  override async putWrites(...given: Parameters<MemorySaver["putWrites"]>): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await super.putWrites(...given);
  }
}

/** LangChain names messages by their call only if someone listens (1.2.13), and the server's traces always do. */
class Listener extends BaseCallbackHandler {
  override name = "listener";
}

export const createAlone = ({ steps, modes, subgraphs, durability, watched, stops }: StreamCase) => {
  const graph = drawnGraph(steps, new WaitingSaver());
  const configurable = { thread_id: newId() };
  // The state keeps the chunks of a model that streams, and the models of a watched thread do.
  const asked: Mode[] = watched ? [...modes, "messages-tuple"] : modes;
  const streamMode = [
    ...new Set(
      asked.flatMap((mode) => {
        if (mode === "messages-tuple") return ["messages" as const];
        // Its `messages/complete` come from the state.
        if (mode === "messages") return ["messages" as const, "values" as const];
        return mode === "events" ? ["values" as const] : [mode];
      }),
    ),
  ];

  return {
    async interruptIds(): Promise<string[]> {
      const { tasks } = await graph.getState({ configurable });
      return tasks.flatMap(({ interrupts }) => interrupts.flatMap(({ id }) => id ?? []));
    },

    async stream({ input = null, command }: Given): Promise<Told[]> {
      const told: Told[] = [];
      const tell = (...event: Told): void => void told.push(event);
      const growing = createGrowing(tell);
      const take = ([namespace, mode, payload]: Chunk): void => {
        const suffix = namespace.map((part) => `|${part}`).join("");
        if (mode === "messages") {
          if (modes.includes("messages-tuple")) tell(`messages${suffix}`, wire(payload));
          if (modes.includes("messages")) growing.add(payload as [MessageLike, unknown]);
          return;
        }
        if ((modes as string[]).includes(mode)) tell(`${mode}${suffix}`, shown(mode, payload));
        if (mode === "values" && modes.includes("messages") && namespace.length === 0)
          growing.finish(payload);
      };
      const whole = (chunk: unknown): Chunk => (subgraphs ? chunk : [[], ...(chunk as unknown[])]) as Chunk;
      const given = command === undefined ? (input as never) : (new Command(command) as never);
      const runId = newId();
      const options = {
        configurable,
        streamMode,
        subgraphs,
        durability,
        ...(stops === "before" && { interruptBefore: "*" as const }),
        ...(stops === "after" && { interruptAfter: "*" as const }),
        runId,
        callbacks: [new Listener()],
        signal: new AbortController().signal,
      };
      try {
        if (!modes.includes("events")) {
          for await (const chunk of await graph.stream(given, options)) take(whole(chunk));
          return told;
        }
        for await (const event of graph.streamEvents(given, { ...options, version: "v2" })) {
          if (event.run_id === runId && event.event === "on_chain_stream")
            take(whole((event.data as { chunk: unknown }).chunk));
          else if (!event.tags?.includes(HIDDEN))
            tell("events", wire({ ...event, data: withoutStack(event.data as Record<string, unknown>) }));
        }
      } catch (error) {
        const { name, message } = error as Error;
        tell("error", { error: name, message });
      }
      return told;
    },
  };
};
