/** A graph needs the classes of its own copy of LangGraph: its code, and LangGraph for a `Send`, use `instanceof`. */

import { load } from "@langchain/core/load";
import * as ownMessages from "@langchain/core/messages";
import type { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import type { Command, Overwrite, Send } from "@langchain/langgraph";
import type { Properties } from "../../platform/lib/properties.ts";
import { MESSAGE_CLASSES } from "./types/message-trees.ts";

type MessageClass = new (properties: Properties) => object;

export interface ValueClasses {
  readonly messages: ReadonlyMap<unknown, MessageClass>;
  readonly Send: typeof Send;
  readonly Command: typeof Command;
  readonly Overwrite: new (value: unknown) => Overwrite;
  readonly DeltaSnapshot: new (value: unknown) => DeltaSnapshot;
  /** For any other LangChain class, from its JSON text. */
  load(text: string): Promise<unknown>;
}

/** Old copies lack some classes. */
export interface LangGraphModules {
  langgraph: Partial<Pick<ValueClasses, "Send" | "Command" | "Overwrite">>;
  checkpoint: Partial<Pick<ValueClasses, "DeltaSnapshot">>;
  messages: Readonly<Record<string, unknown>>;
  load: ValueClasses["load"];
}

class SentToNode {
  readonly lg_name = "Send";
  timeout: unknown;

  constructor(
    readonly node: string,
    public args: unknown,
  ) {}

  toJSON(): Properties {
    const { lg_name, node, args, timeout } = this;
    return { lg_name, node, args, timeout };
  }
}

class GivenCommand {
  readonly lg_name = "Command";
  graph: unknown;
  update: unknown;
  resume: unknown;
  goto: unknown[];

  constructor({ graph, update, resume, goto = [] }: Properties) {
    Object.assign(this, { graph, update, resume });
    this.goto = Array.isArray(goto) ? goto : [goto];
  }

  toJSON(): Properties {
    const { lg_name, update, resume, goto } = this;
    return { lg_name, update, resume, goto };
  }
}

class OverwrittenValue {
  readonly lg_name = "Overwrite";

  constructor(readonly __overwrite__: unknown) {}

  toJSON(): Properties {
    return { __overwrite__: this.__overwrite__ };
  }
}

class SnapshotOfDeltas {
  readonly lg_name = "DeltaSnapshot";
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

const messagesOf = (module: Readonly<Record<string, unknown>>): ReadonlyMap<unknown, MessageClass> =>
  new Map(
    [...MESSAGE_CLASSES].map((name) => [
      name,
      (module[name] ?? (ownMessages as Record<string, unknown>)[name]) as MessageClass,
    ]),
  );

/** For values that are only sent as JSON, because this package does not bring LangGraph. */
export const PLAIN_CLASSES: ValueClasses = {
  messages: messagesOf(ownMessages),
  Send: SentToNode as unknown as typeof Send,
  Command: GivenCommand as unknown as typeof Command,
  Overwrite: OverwrittenValue as unknown as typeof Overwrite,
  DeltaSnapshot: SnapshotOfDeltas as unknown as ValueClasses["DeltaSnapshot"],
  load,
};

export const classesIn = ({ langgraph, checkpoint, messages, load }: LangGraphModules): ValueClasses => ({
  messages: messagesOf(messages),
  Send: langgraph.Send ?? PLAIN_CLASSES.Send,
  Command: langgraph.Command ?? PLAIN_CLASSES.Command,
  Overwrite: langgraph.Overwrite ?? PLAIN_CLASSES.Overwrite,
  DeltaSnapshot: checkpoint.DeltaSnapshot ?? PLAIN_CLASSES.DeltaSnapshot,
  load,
});

/** For checkpointers without a graph. Rejects if there is no LangGraph beside this package. */
export const classesBesideThis = async (): Promise<ValueClasses> =>
  classesIn({
    langgraph: await import("@langchain/langgraph"),
    checkpoint: await import("@langchain/langgraph-checkpoint"),
    messages: ownMessages,
    load,
  });
