import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** Users by name; each user owns the records they create. Some names get a special behaviour that the matrix tests. */
export const auth = new Auth()
  .authenticate((request: Request) => {
    const name = /^Bearer ([a-z]+\d*)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    if (name === undefined) throw new HTTPException(401, { message: "Who are you?" });
    if (name === "faulty") throw new TypeError("canary-thrown by authenticate");
    return name;
  })
  .on("*", ({ value, user }) => {
    if (user.identity === "thrower") throw new TypeError("canary-thrown by a handler");
    if (user.identity === "denied") return false;
    const owned = value as { metadata?: Record<string, unknown> };
    owned.metadata = { ...owned.metadata, owner: user.identity };
    // Sees nothing, and creates records under the name of another owner.
    if (user.identity === "hider")
      return { $and: [{ owner: "nobody" }, { owner: { $contains: "hider" } }] } as never;
    return { owner: user.identity };
  })
  .on("store", ({ value, user }) => {
    if (user.identity === "thrower") throw new TypeError("canary-thrown by a handler");
    if (user.identity === "denied") return false;
    const asked = value as { namespace?: string[] };
    asked.namespace = [user.identity, ...(asked.namespace ?? [])];
  });
