import { Auth } from "@langchain/langgraph-sdk/auth";

/** A bearer token is the user's name, and users see only their own records: a typical `Auth`. */
export const auth = new Auth()
  .authenticate((request: Request) => request.headers.get("authorization")?.slice("Bearer ".length) ?? "")
  .on("*", ({ value, user }) => {
    const asked = value as { metadata?: Record<string, unknown> };
    asked.metadata = { ...asked.metadata, owner: user.identity };
    return { owner: user.identity };
  });
