import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** Each user owns what they make, and sees nothing else. Put the check of your own sessions in the place of these tokens. */
const users: ReadonlyMap<string, string> = new Map([
  ["alice-token", "alice"],
  ["bob-token", "bob"],
]);

export const auth = new Auth()
  .authenticate((request: Request) => {
    const token = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
    const identity = users.get(token);
    if (identity === undefined) throw new HTTPException(401, { message: "Show who you are." });
    return { identity, permissions: [] };
  })
  // What is set in `metadata` is stored; what is returned has to hold for each record.
  .on("*", ({ value, user }) => {
    const asked = value as { metadata?: Record<string, unknown> };
    asked.metadata = { ...asked.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  // Items of the store have no metadata: each user has a namespace.
  .on("store", ({ value, user }) => {
    const asked = value as { namespace?: string[] };
    asked.namespace = [user.identity, ...(asked.namespace ?? [])];
  });
