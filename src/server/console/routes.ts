import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import { consoleNotFound } from "../../platform/domain/errors.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import type { SignIn } from "../../http/sign-in.ts";

/** From `npm run build:console`: beside `src/` here, within `dist/` in the package. */
const BUILT = fileURLToPath(new URL("../../../dist/page/", import.meta.url));

/**
 * No foreign resources: a graph's text may name any address, and loading it would reveal the reader. No frames, against
 * clickjacking.
 */
const POLICY =
  "default-src 'self'; base-uri 'none'; form-action 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; " +
  "style-src 'self' 'unsafe-inline'; object-src 'none'; frame-ancestors 'none'";

/** The file's name changes with its contents. */
const NAMED_BY_CONTENTS = /[\\/]assets[\\/]/;
const FOR_EVER = "public, max-age=31536000, immutable";

/** Addresses of pages without their `#`, which people omit and mail programs cut off. */
const PAGE_WITHOUT_HASH =
  /^\/console\/((?:assistants|crons|graph|inbox|overview|queue|runs|store|threads)(?:\/[^?]*)?)(\?.*)?$/;

/**
 * Serves static files without data of the deployment. `isOffered`: called at each request, because API keys come and
 * go.
 */
export const createConsoleRoutes =
  (signIn: SignIn, isOffered: () => boolean): RoutePlugin =>
  async (app) => {
    app.addHook("onRequest", (request, _reply, done) => {
      if (isOffered()) return done();
      done(
        consoleNotFound(
          "This server shows its console only on its own machine, because it has no API keys and no auth.",
        ),
      );
    });
    app.addHook("onSend", (_request, reply, _payload, done) => {
      reply.headers({
        "content-security-policy": POLICY,
        "referrer-policy": "no-referrer",
      });
      // Another server may have a version that this one lacks.
      if (reply.statusCode >= 400) reply.header("cache-control", "no-store");
      else if (!reply.hasHeader("cache-control")) reply.header("cache-control", "no-cache");
      // Shared caches must keep compressed and plain files apart.
      const vary = reply.getHeader("vary");
      reply.header("vary", vary === undefined ? "accept-encoding" : `${String(vary)}, accept-encoding`);
      done();
    });
    if (!existsSync(BUILT)) {
      app.get("/console", { schema: { hide: true } }, () => {
        throw consoleNotFound("The console is not built here. Build it with: npm run build:console");
      });
      return;
    }
    await app.register(fastifyStatic, {
      root: BUILT,
      serve: false,
      preCompressed: true,
      cacheControl: false,
      // Fastify derives both from size and time. Two versions may have one size, and package managers set one time for
      // all files.
      etag: false,
      lastModified: false,
      setHeaders(reply, path) {
        reply.setHeader("cache-control", NAMED_BY_CONTENTS.test(path) ? FOR_EVER : "no-cache");
      },
    });
    // Uses the original path: the page's addresses are relative, and a proxy may add a prefix.
    app.get("/console", { schema: { hide: true } }, (request, reply) => {
      const [path, query] = request.url.split("?", 2) as [string, string | undefined];
      if (path.endsWith("/")) return reply.sendFile("index.html");
      return reply.redirect(`console/${query === undefined ? "" : `?${query}`}`);
    });
    app.get("/console/sign-in.json", { schema: { hide: true } }, () => signIn);
    // Lets the page check its credential.
    app.get("/console/caller", { schema: { hide: true } }, (_request, reply) =>
      reply.code(204).header("cache-control", "no-store").send(),
    );
    app.get("/console/*", { schema: { hide: true } }, (request, reply) => {
      const [, place, query = ""] = PAGE_WITHOUT_HASH.exec(request.url) ?? [];
      if (place === undefined) return reply.sendFile((request.params as { "*": string })["*"]);
      const up = "../".repeat(place.split("/").length - 1) || "./";
      return reply.redirect(`${up}#/${place}${query}`);
    });
  };
