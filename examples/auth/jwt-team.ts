import { Auth } from "@langchain/langgraph-sdk/auth";
import { refusal, verifyToken } from "./verify-jwt.ts";

/**
 * Teams by JSON Web Tokens: `team` is the team that the user works in at the moment, `role` what they may do in it. Identity
 * providers have such claims under other names, as `org_id` and `org_role`. All that a team makes is the whole team's.
 */
const PERMISSIONS: ReadonlyMap<unknown, string[]> = new Map([
  ["viewer", ["read"]],
  ["member", ["read", "write"]],
  ["admin", ["read", "write", "administer"]],
]);
const READS = ["read", "search", "get", "list_namespaces"];

/** What this call of a handler needs. */
const needed = (action: string): string => (READS.includes(action) ? "read" : "write");

export const auth = new Auth()
  .authenticate(async (request: Request) => {
    const { sub = "", team, role } = await verifyToken(request);
    if (typeof team !== "string" || team === "") throw refusal("The token names no team.");
    return { identity: sub, team, permissions: PERMISSIONS.get(role) ?? [] };
  })
  .on("*", ({ action, value, user, permissions }) => {
    if (!permissions.includes(needed(action))) return false;
    const asked = value as { metadata?: Record<string, unknown> };
    // Set with each change, so nobody hands a record to another team.
    asked.metadata = { ...asked.metadata, team: user.team };
    return { team: user.team };
  })
  .on("threads:delete", ({ user, permissions }) =>
    permissions.includes("administer") ? { team: user.team } : false,
  )
  // The assistants that graph ids stand for belong to no team: every user may read them, whatever is answered here.
  .on("assistants", ({ action, value, user, permissions }) => {
    if (!permissions.includes(needed(action) === "read" ? "read" : "administer")) return false;
    const asked = value as { metadata?: Record<string, unknown> };
    asked.metadata = { ...asked.metadata, team: user.team };
    return { team: user.team };
  })
  .on("store", ({ action, value, user, permissions }) => {
    if (!permissions.includes(needed(action))) return false;
    const asked = value as { namespace?: string[] };
    asked.namespace = [user.team, ...(asked.namespace ?? [])];
    return true;
  });
