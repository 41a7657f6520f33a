import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
import { directory } from "./directory.ts";

/** Users by tokens such as `alice-1`; each owns the records they create, and sees those of their teams. */
export const auth = new Auth()
  .authenticate((request: Request) => {
    const token = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
    directory.shown.set(token, (directory.shown.get(token) ?? 0) + 1);
    if (directory.isAway) throw new HTTPException(503, { message: "The directory is away." });
    if (directory.isUnreachable) throw new TypeError("fetch failed");
    const identity = /^([a-z]+)-\d+$/.exec(token)?.[1];
    if (identity === undefined || directory.expired.has(token)) {
      throw new HTTPException(401, { message: "The token has expired." });
    }
    return { identity, permissions: [] };
  })
  .on("*", ({ value, user }) => {
    const owned = value as { metadata?: Record<string, unknown> };
    owned.metadata = { owner: user.identity, ...owned.metadata };
    return { owner: user.identity };
  })
  .on("threads:read", ({ user }) => {
    if (directory.barred.has(user.identity)) return false;
    return { owner: user.identity };
  });
