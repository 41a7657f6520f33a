import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { streamSSE } from "hono/streaming";
import type { AppAuth } from "../../../../src/server/custom-app/environment.ts";

type Variables = { auth?: AppAuth };

/** The requests that the middleware has received, for the tests. */
export const seen: string[] = [];

export const app = new Hono<{ Variables: Variables }>();

app.use("*", async (c, next) => {
  seen.push(`${c.req.method} ${c.req.path}`);
  await next();
  c.header("x-own", String(c.res.status));
});
app.use("*", async (c, next) => {
  const asked = c.req.header("x-ask");
  if (asked === "refuse") return c.json({ detail: "not you" }, 403);
  if (asked === "throw") throw new Error("a secret of the application");
  if (asked === "throw-later") {
    await next();
    throw new Error("another secret of the application");
  }
  if (asked === "header") c.req.raw.headers.set("x-user", "from the application");
  if (asked === "read") {
    const body = await c.req.json<unknown>();
    c.header("x-body", JSON.stringify(body));
  }
  if (asked === "replace") {
    c.req.raw = new Request(c.req.raw, {
      body: JSON.stringify({ metadata: { by: "app" } }),
      method: c.req.method,
      duplex: "half",
    } as RequestInit);
  }
  await next();
  if (asked === "upper" && c.res.body !== null) {
    const upper = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(new TextEncoder().encode(new TextDecoder().decode(chunk).toUpperCase()));
      },
    });
    c.res = new Response(c.res.body.pipeThrough(upper), c.res);
  }
  if (asked === "drop") c.res = new Response("instead", { status: 418 });
  if (asked === "look") c.header("x-size", String((await c.res.clone().text()).length));
});
app.use("/threads/*", async (c, next) => {
  c.header("x-guard", "passed");
  if (c.req.header("x-guarded") !== undefined) return c.text("guarded", 403);
  await next();
});
app.get("/hello/:name", (c) =>
  c.json({ hello: c.req.param("name"), user: c.get("auth")?.user.identity ?? null }),
);
app.get("/whoami", (c) => c.json(c.get("auth") ?? null));
app.post("/hook", (c) => c.json({ told: true }));
app.get("/info", (c) => c.json({ mine: true }));
app.get("/missing", (c) => c.notFound());
app.get("/teapot", () => {
  throw new HTTPException(418, { message: "short and stout" });
});
app.get("/cookies", (c) => {
  c.header("set-cookie", "a=1", { append: true });
  c.header("set-cookie", "b=2", { append: true });
  return c.body(null, 204);
});
app.post("/upload", async (c) => {
  let bytes = 0;
  for await (const chunk of c.req.raw.body as unknown as AsyncIterable<Uint8Array>) bytes += chunk.length;
  return c.json({ bytes });
});
let left: (() => void) | undefined;
export const hasLeft = new Promise<void>((resolve) => (left = resolve));
app.get("/ticks", (c) =>
  streamSSE(c, async (stream) => {
    stream.onAbort(() => left?.());
    for (let tick = 0; !stream.aborted; tick += 1) {
      await stream.writeSSE({ data: String(tick) });
      await stream.sleep(20);
    }
  }),
);
app.get("/never", async (c) => {
  await new Promise((resolve) => c.req.raw.signal.addEventListener("abort", resolve));
  seen.push("left");
  return c.text("");
});
