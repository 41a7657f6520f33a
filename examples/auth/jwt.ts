import { Auth } from "@langchain/langgraph-sdk/auth";
import { verifyToken } from "./verify-jwt.ts";

/** Users by JSON Web Tokens: each sees what they made. The scope `admin` may change assistants. */
export const auth = new Auth()
  .authenticate(async (request: Request) => {
    const payload = await verifyToken(request);
    const permissions = typeof payload.scope === "string" ? payload.scope.split(" ") : [];
    return { identity: payload.sub ?? "", permissions };
  })
  .on("*", ({ value, user }) => {
    const asked = value as { metadata?: Record<string, unknown> };
    asked.metadata = { ...asked.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  .on(
    "assistants",
    ({ action, permissions }) => ["read", "search"].includes(action) || permissions.includes("admin"),
  )
  .on("store", ({ value, user }) => {
    const asked = value as { namespace?: string[] };
    asked.namespace = [user.identity, ...(asked.namespace ?? [])];
  });
