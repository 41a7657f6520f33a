import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** Two users; each owns the records they create. */
const USERS: Readonly<Record<string, string>> = { "Bearer ann-token": "ann", "Bearer bob-token": "bob" };

export const auth = new Auth()
  .authenticate((request: Request) => {
    const header = request.headers.get("authorization") ?? "";
    const identity = Object.hasOwn(USERS, header) ? USERS[header] : undefined;
    if (identity === undefined) throw new HTTPException(401, { message: "Show who you are." });
    return { identity, permissions: [], team: "blue" };
  })
  .on("*", ({ value, user }) => {
    const asked = value as { metadata?: Record<string, unknown> };
    asked.metadata = { ...asked.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  .on("store", ({ value, user }) => {
    const asked = value as { namespace?: string[] };
    asked.namespace = [user.identity, ...(asked.namespace ?? [])];
  });
