import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

/** A thread has members: whoever makes it names them, and all of them may read it and go on with it. */
const users: ReadonlyMap<string, { identity: string; permissions: string[] }> = new Map([
  ["alice-token", { identity: "alice", permissions: ["invite"] }],
  ["bob-token", { identity: "bob", permissions: [] }],
  ["carol-token", { identity: "carol", permissions: [] }],
]);

type Metadata = Record<string, unknown>;

export const auth = new Auth()
  .authenticate((request: Request) => {
    const token = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
    const user = users.get(token);
    if (user === undefined) throw new HTTPException(401, { message: "Show who you are." });
    return user;
  })
  // Whatever no handler below is about: crons, and changing assistants.
  .on("*", () => false)
  .on(["assistants:read", "assistants:search"], () => true)
  .on("threads", ({ user }) => ({ members: { $contains: user.identity } }))
  // A run makes the thread that it needs, with the metadata of the run.
  .on(["threads:create", "threads:create_run"], ({ value, user, permissions }) => {
    const asked = value as { metadata?: Metadata };
    const named: unknown = asked.metadata?.members ?? [];
    if (!Array.isArray(named) || !named.every((one) => typeof one === "string")) {
      throw new HTTPException(422, { message: "'members' is a list of names." });
    }
    if (named.length > 0 && !permissions.includes("invite")) {
      throw new HTTPException(403, { message: "You may not invite others." });
    }
    asked.metadata = {
      ...asked.metadata,
      owner: user.identity,
      members: [...new Set([user.identity, ...named])],
    };
    return { members: { $contains: user.identity } };
  })
  // Who may go on with a thread may not change whose it is.
  .on("threads:update", ({ value, user }) => {
    const { metadata = {} } = value as { metadata?: Metadata };
    if ("members" in metadata || "owner" in metadata) return false;
    return { members: { $contains: user.identity } };
  })
  .on("threads:delete", ({ user }) => ({ owner: user.identity }))
  .on("store", ({ value, user }) => {
    const asked = value as { namespace?: string[] };
    asked.namespace = [user.identity, ...(asked.namespace ?? [])];
  });
