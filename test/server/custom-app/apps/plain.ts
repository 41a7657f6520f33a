/** An application that does not use Hono. */
export default {
  async fetch(request: Request, { api }: { api(request: Request): Promise<Response> }): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/mine") return Response.json({ mine: true });
    if (pathname === "/files/none") return new Response("no such file", { status: 404 });
    if (pathname === "/threads" && request.method === "POST") await request.text();
    if (pathname === "/nothing") return undefined as never;
    if (pathname === "/assistants/search") await Promise.reject(undefined);
    if (pathname === "/moved") return await api(new Request(new URL("/info", request.url)));
    return new Response(null, { status: 404 });
  },
};
export const notAnApp = { fetches: true };
