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

const wrapper = (
  name: string,
  lgName: "Overwrite" | "DeltaSnapshot",
  property: "__overwrite__" | "value",
): ValueType<Properties> => ({
  names: [name],
  lgName,
  encode: (object, encoder) => ({ [TYPE]: name, value: encoder.encode(object[property]) }),
  revive(tree, reviver) {
    const object = new reviver.classes[lgName](reviver.revive(tree.value));
    reviver.loadLater(tree.value, object, property);
    return object;
  },
});

export const OVERWRITE = wrapper("overwrite", "Overwrite", "__overwrite__");
export const DELTA_SNAPSHOT = wrapper("delta_snapshot", "DeltaSnapshot", "value");
