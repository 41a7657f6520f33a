import { relative } from "node:path";
import { errorForClients } from "../../platform/domain/error-for-clients.ts";
import { frameOf } from "../error-place.ts";
import type { SpanFields } from "./scope.ts";

const MESSAGE_LENGTH_AT_MOST = 1_000;

/** `at`: the first place in the project's code, as `file:line:column` from the working directory. */
export const errorFields = (thrown: unknown): SpanFields => {
  const { error: type, message } = errorForClients(thrown);
  const frame = frameOf(thrown);
  return {
    error: {
      type: type.slice(0, 100),
      message: message.slice(0, MESSAGE_LENGTH_AT_MOST),
      ...(frame === undefined
        ? {}
        : { at: `${relative(process.cwd(), frame.file)}:${frame.line}:${frame.column ?? 1}` }),
    },
  };
};
