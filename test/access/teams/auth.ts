import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** Users by name as token; each record belongs to the whole team. */
export const auth = new Auth()
  .authenticate((request: Request) => {
    const name = /^Bearer (ann|bob)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    if (name === undefined) throw new HTTPException(401, { message: "Who are you?" });
    return name;
  })
  .on("*", ({ value }) => {
    const owned = value as { metadata?: Record<string, unknown> };
    owned.metadata = { ...owned.metadata, team: "blue" };
    return { team: "blue" };
  });
