import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import { consoleNotFound } from "../../platform/domain/errors.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import type { SignIn } from "../../http/sign-in.ts";

/** Made of `console/` by Vite (`npm run build:console`); beside `src/` here, within `dist/` in the package. */
const BUILT = fileURLToPath(new URL("../../../dist/page/", import.meta.url));

/**
 * Nothing from elsewhere: what a graph says may name any address, as an image or a link, and a page that loaded it would tell that
 * somebody reads. In no frame: what is clicked there would be clicked here.
 */
const POLICY =
  "default-src 'self'; base-uri 'none'; form-action 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; " +
  "style-src 'self' 'unsafe-inline'; object-src 'none'; frame-ancestors 'none'";

/** The name of such a file changes with its contents. */
const NAMED_BY_CONTENTS = /[\\/]assets[\\/]/;
const FOR_EVER = "public, max-age=31536000, immutable";

/** Addresses of pages without the `#` behind which the page keeps them: people leave it out, and mail programs cut it off. */
const PAGE_WITHOUT_HASH =
  /^\/console\/((?:assistants|crons|graph|queue|runs|store|threads)(?:\/[^?]*)?)(\?.*)?$/;

export interface ConsoleParts {
  /** What the page asks for where the server wants to know who calls. */
  signIn: SignIn;
  /** Asked at each request, since keys come and go: nobody whom this server doesn't know may look at it from elsewhere. */
  isOffered(): boolean;
}

/**
 * The page at `/console`: files that are the same for everybody and tell nothing of the deployment. What it shows it asks the API for, with
 * the key of who looks at it.
 */
export const createConsoleRoutes =
  ({ signIn, isOffered }: ConsoleParts): RoutePlugin =>
  async (app) => {
    app.addHook("onRequest", (request, _reply, done) => {
      if (isOffered()) return done();
      done(
        consoleNotFound(
          "This server shows no console beyond its own machine as long as it knows nobody: it has no API keys and no auth.",
        ),
      );
    });
    app.addHook("onSend", (_request, reply, _payload, done) => {
      reply.headers({
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
      });
      // Names of files are told apart by versions that stand beside each other: what one has not, the next may have.
      if (reply.statusCode >= 400) reply.header("cache-control", "no-store");
      else if (!reply.hasHeader("cache-control")) reply.header("cache-control", "no-cache");
      // A file is there compressed and not: caches between must not give one for the other.
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
      // They would be made of size and time. Pages of two versions are of one size, and package managers and images give all files one time.
      etag: false,
      lastModified: false,
      setHeaders(reply, path) {
        reply.setHeader("cache-control", NAMED_BY_CONTENTS.test(path) ? FOR_EVER : "no-cache");
      },
    });
    // Of the path as it was asked for: the addresses in the page are relative to it, whatever a proxy has put in front.
    app.get("/console", { schema: { hide: true } }, (request, reply) => {
      const [path, query] = request.url.split("?", 2) as [string, string | undefined];
      if (path.endsWith("/")) return reply.sendFile("index.html");
      return reply.redirect(`console/${query === undefined ? "" : `?${query}`}`);
    });
    app.get("/console/sign-in.json", { schema: { hide: true } }, () => signIn);
    // Not open: the page asks it whether the server wants to know who calls, and lets in these credentials.
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
