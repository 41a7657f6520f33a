import { agentToken, sessionOf } from "./agent-token.ts";

/** Save this file as app/api/agents/[...path]/route.ts. The agent server is at THREADLOOM_URL. */
const PREFIX = "/api/agents";
/** The only headers to forward. Cookies and keys of the browser are for this application. */
const FORWARDED = ["accept", "content-type", "last-event-id"];
/** Headers of the connection to the agent server, or of a body that `fetch` has decompressed. */
const NOT_RETURNED = ["connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"];

const handle = async (request: Request): Promise<Response> => {
  if (request.headers.get("sec-fetch-site") === "cross-site")
    return Response.json({ detail: "Pages of other sites may not call this." }, { status: 403 });
  const session = sessionOf(request.headers.get("cookie"));
  if (session === undefined) return Response.json({ detail: "Sign in first." }, { status: 401 });
  const asked = new URL(request.url);
  const target = new URL(process.env.THREADLOOM_URL ?? "http://127.0.0.1:8123");
  // Set the parts one by one: a path that begins with // or @ must not name another host.
  target.pathname = `${target.pathname.replace(/\/$/, "")}${asked.pathname.slice(PREFIX.length)}`;
  target.search = asked.search;
  const headers = new Headers({ authorization: `Bearer ${await agentToken(session)}` });
  for (const name of FORWARDED) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const answer = await fetch(target, {
    method: request.method,
    headers,
    body: request.body,
    duplex: "half",
    redirect: "manual",
    cache: "no-store",
    // When the client leaves, end the request to the agent server: `on_disconnect: "cancel"` depends on it.
    signal: request.signal,
  } as RequestInit);
  const kept = new Headers(answer.headers);
  for (const name of NOT_RETURNED) kept.delete(name);
  return new Response(answer.body, { status: answer.status, headers: kept });
};

export { handle as DELETE, handle as GET, handle as PATCH, handle as POST, handle as PUT };

/** Never cache. Allow long functions: runs are long, and a host that ends a function cuts its stream. */
export const dynamic = "force-dynamic";
export const maxDuration = 300;
