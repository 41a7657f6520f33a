import { Auth } from "@langchain/langgraph-sdk/auth";

/** Whoever has a bearer token is the user of that name, and sees what is theirs: the usual `Auth`. */
export const auth = new Auth()
  .authenticate((request: Request) => request.headers.get("authorization")?.slice("Bearer ".length) ?? "")
  .on("*", ({ value, user }) => {
    const asked = value as { metadata?: Record<string, unknown> };
    asked.metadata = { ...asked.metadata, owner: user.identity };
    return { owner: user.identity };
  });
