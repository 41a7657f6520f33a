import { SignJWT } from "jose";

/** Who has signed in at your application, and with which team. */
export interface Session {
  user: string;
  team: string;
  role: "viewer" | "member" | "admin";
}

/** Yours: what your application keeps of who has signed in. */
const sessions: ReadonlyMap<string, Session> = new Map([
  ["alice-session", { user: "alice", team: "red", role: "member" }],
  ["rob-session", { user: "rob", team: "red", role: "viewer" }],
  ["bob-session", { user: "bob", team: "blue", role: "member" }],
]);

/** The session that a request's cookies name. */
export const sessionOf = (cookies: string | null | undefined): Session | undefined =>
  sessions.get(/(?:^|; *)session=([^;]*)/.exec(cookies ?? "")?.[1] ?? "");

/**
 * What the agent server is sent instead of the cookie: `examples/auth/jwt-team.ts` there checks it with the same JWT_SECRET. It ends what
 * is open, too, so it lives as long as the longest stream.
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
