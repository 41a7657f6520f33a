import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** The SDK types neither lists nor `$or`. */
const filter = (filter: object): Record<string, never> => filter as Record<string, never>;

/** Filters for the store, named by the token: `Bearer contains alice`. */
export const auth = new Auth()
  .authenticate((request: Request) => {
    const [, scheme, identity] = request.headers.get("authorization")?.split(" ") ?? [];
    if (scheme === undefined || identity === undefined) throw new HTTPException(401);
    return { identity, permissions: [scheme] };
  })
  .on("*", ({ value, user }): Record<string, never> => {
    const asked = value as { metadata?: Record<string, unknown> };
    asked.metadata = { ...asked.metadata, owner: user.identity };
    if (user.permissions.includes("contains")) return filter({ namespace: { $contains: user.identity } });
    if (user.permissions.includes("exact")) return filter({ namespace: ["notes", user.identity] });
    if (user.permissions.includes("key")) return filter({ $or: [{ key: user.identity }, { key: "shared" }] });
    return filter({ owner: user.identity });
  });
