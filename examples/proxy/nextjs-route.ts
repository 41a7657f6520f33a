import { agentToken, sessionOf } from "./agent-token.ts";

/** Save it as app/api/agents/[...path]/route.ts: `/api/agents` is the API of the agent server at THREADLOOM_URL. */
const PREFIX = "/api/agents";
/** All that the agent server needs of the browser's: its cookies and keys are for this application. */
const HANDED_ON = ["accept", "content-type", "last-event-id"];
/** Of the connection to the agent server, or of a body that `fetch` has decompressed. */
const NOT_HANDED_BACK = [
  "connection",
  "content-encoding",
  "content-length",
  "keep-alive",
  "transfer-encoding",
];

const handle = async (request: Request): Promise<Response> => {
  if (request.headers.get("sec-fetch-site") === "cross-site")
    return Response.json({ detail: "Pages of other sites may not call this." }, { status: 403 });
  const session = sessionOf(request.headers.get("cookie"));
  if (session === undefined) return Response.json({ detail: "Sign in first." }, { status: 401 });
  const asked = new URL(request.url);
  const target = new URL(process.env.THREADLOOM_URL ?? "http://127.0.0.1:8123");
  // Set part by part: a path that begins with // or @ must not name another host.
  target.pathname = `${target.pathname.replace(/\/$/, "")}${asked.pathname.slice(PREFIX.length)}`;
  target.search = asked.search;
  const headers = new Headers({ authorization: `Bearer ${await agentToken(session)}` });
  for (const name of HANDED_ON) {
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
    // A client that leaves ends its request at the agent server, too: `on_disconnect: "cancel"` depends on it.
    signal: request.signal,
  } as RequestInit);
  const kept = new Headers(answer.headers);
  for (const name of NOT_HANDED_BACK) kept.delete(name);
  return new Response(answer.body, { status: answer.status, headers: kept });
};

export { handle as DELETE, handle as GET, handle as PATCH, handle as POST, handle as PUT };

/** Nothing of it is known before it is asked for, and runs last: hosts that end functions early cut streams. */
export const dynamic = "force-dynamic";
export const maxDuration = 300;
