import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** A team in which Ann alone removes threads, and she none that are kept; what handlers of threads were told is noted. */
export const told: unknown[] = [];

const asked = (value: unknown): Record<string, unknown> => value as Record<string, unknown>;

export const auth = new Auth()
  .authenticate((request: Request) => {
    const name = /^Bearer (ann|bob)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    if (name === undefined) throw new HTTPException(401, { message: "Who are you?" });
    return name;
  })
  .on("*", () => true)
  .on("threads:create", ({ value }) => {
    told.push(structuredClone(asked(value).ttl));
  })
  .on("threads:update", ({ value }) => {
    const { ttl } = asked(value) as { ttl?: { ttl: number } };
    told.push(structuredClone(ttl));
    if (ttl !== undefined && ttl.ttl > 1_000) ttl.ttl = 1_000;
  })
  .on("threads:delete", ({ user }) => (user.identity === "ann" ? { kept: "no" } : false));
