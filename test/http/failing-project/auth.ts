import { Auth } from "@langchain/langgraph-sdk/auth";

/** Throws an error that quotes its input, as libraries do. */
export const auth = new Auth()
  .authenticate((request: Request) => {
    const token = request.headers.get("authorization") ?? "";
    if (token.startsWith("Bearer bad")) throw new SyntaxError(`This is no token: ${token}`);
    return { identity: "alice", permissions: [] };
  })
  .on("assistants:search", ({ value }) => {
    throw new RangeError(`No such name: ${String(value.metadata?.name)}`, {
      cause: new TypeError(`Looked for ${String(value.metadata?.name)}`),
    });
  });
