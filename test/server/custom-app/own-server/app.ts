import { Client } from "@langchain/langgraph-sdk";

/** Created while the application is loaded, before a server listens. */
const early = new Client({ callerOptions: { maxRetries: 0 } });

/** `/early` and `/late` create a thread through the server's own API, with the credentials of this request if it has any. */
export const app = {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (!/\/(early|late)$/.test(pathname)) return new Response(null, { status: 404 });
    const authorization = request.headers.get("authorization");
    const late = new Client({
      callerOptions: { maxRetries: 0 },
      defaultHeaders: authorization === null ? {} : { authorization },
    });
    try {
      const { thread_id } = await (pathname.endsWith("/early") ? early : late).threads.create();
      return Response.json({ thread_id });
    } catch (error) {
      return Response.json({ refused: (error as { status?: number }).status });
    }
  },
};
