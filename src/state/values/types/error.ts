import { setProperty, type Properties } from "../../../platform/lib/properties.ts";
import { TYPE } from "../type-key.ts";
import type { ValueType } from "../value-type.ts";

const CLASSES: ReadonlyMap<string, ErrorConstructor> = new Map(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((errorClass) => [
    errorClass.name,
    errorClass,
  ]),
);

/** Without the stack, which would show readers the paths of the machine. */
export const ERROR: ValueType<Error> = {
  names: ["error"],
  is: (value) => value instanceof Error,
  encode(error, encoder) {
    const own = Object.entries(error).filter(
      ([name]) => name !== "name" && name !== "message" && name !== "stack",
    );
    return {
      [TYPE]: "error",
      name: error.name,
      message: error.message,
      ...(error.cause === undefined ? {} : { cause: encoder.encode(error.cause) }),
      ...(own.length === 0 ? {} : { fields: encoder.encodeProperties(Object.fromEntries(own)) }),
    };
  },
  revive(tree, reviver) {
    const name = tree.name as string;
    const errorClass = CLASSES.get(name) ?? Error;
    const cause = tree.cause === undefined ? undefined : { cause: reviver.revive(tree.cause) };
    const error = new errorClass(tree.message as string, cause);
    if (error.name !== name) error.name = name;
    for (const [key, value] of Object.entries((tree.fields as Properties | undefined) ?? {})) {
      setProperty(error as unknown as Properties, key, reviver.revive(value));
    }
    // A stack would show where the error was read.
    error.stack = `${name}: ${error.message}`;
    return error;
  },
  toWire: ({ name, message }) => ({ name, message }),
};
