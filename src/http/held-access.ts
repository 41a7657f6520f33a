import type { FastifyInstance } from "fastify";
import type { Reauthorization } from "../access/reauthorization.ts";

/** `reauthorization` undefined: access is never lost. */
export const holdAccess = (
  app: FastifyInstance,
  reauthorization: Pick<Reauthorization, "hold"> | undefined,
): void => {
  app.decorateRequest("holdAccess", function holdAccess(ask) {
    const { method, url, headers, caller } = this;
    if (reauthorization !== undefined) return reauthorization.hold({ method, url, headers }, caller, ask);
    return { signal: new AbortController().signal, caller, release: () => undefined };
  });
};
