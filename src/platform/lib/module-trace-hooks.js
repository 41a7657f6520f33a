/**
 * Runs in the thread of Node's module hooks; see module-trace.ts. Reports which file of the project loads which, and
 * gives each file the edition of its importer.
 */
import { URL } from "node:url";

const EDITION = "edition";

let port;
/** Modules of the server do not belong to the project. */
let own;

export const initialize = (data) => {
  port = data.port;
  own = data.own;
};

const isProjects = (url) =>
  url.startsWith("file:") && !url.startsWith(own) && !url.includes("/node_modules/");

const editionOf = (url) => {
  const parsed = new URL(url);
  const edition = parsed.searchParams.get(EDITION);
  parsed.searchParams.delete(EDITION);
  return { plain: parsed.href, edition };
};

export const resolve = async (specifier, context, next) => {
  const { parentURL } = context;
  if (parentURL === undefined || !isProjects(parentURL)) return await next(specifier, context);
  const { plain: parent, edition } = editionOf(parentURL);
  // Later hooks look for the parent's file and do not know editions.
  const resolved = await next(specifier, { ...context, parentURL: parent });
  if (!resolved.url.startsWith("file:")) return resolved;
  port.postMessage({ parent, url: resolved.url });
  if (edition === null || !isProjects(resolved.url)) return resolved;
  const url = new URL(resolved.url);
  url.searchParams.set(EDITION, edition);
  return { ...resolved, url: url.href };
};

export const load = async (url, context, next) => {
  if (!isProjects(url)) return await next(url, context);
  const { plain } = editionOf(url);
  port.postMessage({ parent: undefined, url: plain });
  return await next(plain, context);
};
