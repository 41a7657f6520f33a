import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/**
 * A team in which only Ann may remove threads, and only those that are not marked to be kept. `ttls` records each `ttl` that a handler of
 * threads received.
 */
export const ttls: unknown[] = [];

const asked = (value: unknown): Record<string, unknown> => value as Record<string, unknown>;

export const auth = new Auth()
  .authenticate((request: Request) => {
    const name = /^Bearer (ann|bob)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    if (name === undefined) throw new HTTPException(401, { message: "Who are you?" });
    return name;
  })
  .on("*", () => true)
  .on("threads:create", ({ value }) => {
    ttls.push(structuredClone(asked(value).ttl));
  })
  .on("threads:update", ({ value }) => {
    const { ttl } = asked(value) as { ttl?: { ttl: number } };
    ttls.push(structuredClone(ttl));
    if (ttl !== undefined && ttl.ttl > 1_000) ttl.ttl = 1_000;
  })
  .on("threads:delete", ({ user }) => (user.identity === "ann" ? { kept: "no" } : false));
