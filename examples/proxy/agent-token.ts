import { SignJWT } from "jose";

/** A user who has signed in at your application. */
export interface Session {
  user: string;
  team: string;
  role: "viewer" | "member" | "admin";
}

/** Replace these by your application's sessions. */
const sessions: ReadonlyMap<string, Session> = new Map([
  ["alice-session", { user: "alice", team: "red", role: "member" }],
  ["rob-session", { user: "rob", team: "red", role: "viewer" }],
  ["bob-session", { user: "bob", team: "blue", role: "member" }],
]);

/** The session of a request's cookies. */
export const sessionOf = (cookies: string | null | undefined): Session | undefined =>
  sessions.get(/(?:^|; *)session=([^;]*)/.exec(cookies ?? "")?.[1] ?? "");

/**
 * The token for the agent server, where `jwt-team.ts` checks it with the same JWT_SECRET. When the token expires, open streams end:
 * let the token live as long as the longest stream.
 */
export const agentToken = async ({ user, team, role }: Session): Promise<string> => {
  const secret = process.env.JWT_SECRET ?? "";
  if (secret.length < 32) throw new Error("Set JWT_SECRET, the same as the agent server's, with 32 bytes.");
  return await new SignJWT({ team, role })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(user)
    .setAudience("threadloom")
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(secret));
};
