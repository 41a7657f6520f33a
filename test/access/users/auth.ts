import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** Users by token; each owns the records they create. */
export const auth = new Auth()
  .authenticate((request: Request) => {
    const token = request.headers.get("authorization")?.replace(/^Bearer /, "");
    switch (token) {
      case "alice-token":
      case "bob-token": {
        const identity = token.replace("-token", "");
        return { identity, permissions: ["talk"], team: "blue", email: `${identity}@canary.example` };
      }
      case "nobody":
        return { permissions: [] } as never;
      case "broken":
        throw new TypeError("a canary of the handler");
      case "plain":
        return "plain";
      default:
        throw new HTTPException(401, {
          message: "Show who you are.",
          headers: { "WWW-Authenticate": 'Bearer realm="test"' },
        });
    }
  })
  .on("*", ({ value, user }) => {
    if (user.identity === "plain") return false;
    const owned = value as { metadata?: Record<string, unknown> };
    owned.metadata = { ...owned.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  .on("store", ({ value, user, action }) => {
    const asked = value as { namespace?: string[] };
    if (action === "delete" && user.identity === "bob")
      throw new HTTPException(402, { message: "Not here." });
    asked.namespace = [user.identity, ...(asked.namespace ?? [])];
  });
