import type { Command } from "@langchain/langgraph";
import type { Properties } from "../../../platform/lib/properties.ts";
import { TYPE } from "../type-key.ts";
import type { ValueType } from "../value-type.ts";

export const SEND: ValueType<Properties> = {
  names: ["send"],
  lgName: "Send",
  encode: ({ node, args, timeout }, encoder) => ({
    [TYPE]: "send",
    node,
    args: encoder.encode(args),
    ...(timeout === undefined ? {} : { timeout: encoder.encode(timeout) }),
  }),
  revive({ node, args, timeout }, reviver) {
    const send = new reviver.classes.Send(node as string, {});
    send.args = reviver.revive(args) as typeof send.args;
    if (timeout !== undefined) send.timeout = reviver.revive(timeout) as typeof send.timeout;
    reviver.loadLater(args, send, "args");
    return send;
  },
};

export const COMMAND: ValueType<Properties> = {
  names: ["command"],
  lgName: "Command",
  encode: ({ graph, update, resume, goto }, encoder) => ({
    [TYPE]: "command",
    value: encoder.encodeProperties({ graph, update, resume, goto }),
  }),
  revive(tree, reviver) {
    const parts = tree.value as Properties;
    const command = new reviver.classes.Command(
      reviver.revive(parts) as ConstructorParameters<typeof Command>[0],
    );
    for (const key of ["update", "resume"] as const) reviver.loadLater(parts[key], command, key);
    return command;
  },
};

export const OVERWRITE: ValueType<Properties> = {
  names: ["overwrite"],
  lgName: "Overwrite",
  encode: (value, encoder) => ({ [TYPE]: "overwrite", value: encoder.encode(value.__overwrite__) }),
  revive(tree, reviver) {
    const overwrite = new reviver.classes.Overwrite(reviver.revive(tree.value));
    reviver.loadLater(tree.value, overwrite, "__overwrite__");
    return overwrite;
  },
};

export const DELTA_SNAPSHOT: ValueType<Properties> = {
  names: ["delta_snapshot"],
  lgName: "DeltaSnapshot",
  encode: (value, encoder) => ({ [TYPE]: "delta_snapshot", value: encoder.encode(value.value) }),
  revive(tree, reviver) {
    const snapshot = new reviver.classes.DeltaSnapshot(reviver.revive(tree.value));
    reviver.loadLater(tree.value, snapshot, "value");
    return snapshot;
  },
};
