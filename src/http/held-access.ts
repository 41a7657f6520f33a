import type { FastifyInstance } from "fastify";
import type { AskingAgain } from "../access/reauthorization.ts";

/** Lets routes hold the access of what stays open. `askingAgain` undefined: nobody asks, and it is never lost. */
export const holdAccess = (
  app: FastifyInstance,
  askingAgain: Pick<AskingAgain, "hold"> | undefined,
): void => {
  app.decorateRequest("holdAccess", function holdAccess(ask) {
    const { method, url, headers, caller } = this;
    if (askingAgain !== undefined) return askingAgain.hold({ method, url, headers }, caller, ask);
    return { signal: new AbortController().signal, caller, release: () => undefined };
  });
};
