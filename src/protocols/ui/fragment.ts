import type { UiBundle } from "./bundle.ts";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

const LOOPBACK_HOST = /^(?:localhost|[\w-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;
const HOST = /^[\w.-]+(?::\d+)?$|^\[[0-9a-f:]+\](?::\d+)?$/i;
const PREFIX = /^(?:\/[\w.~-]+)+$/;

const forwarded = (headers: Headers, name: string, pattern: RegExp): string | undefined => {
  const value = headers[`x-forwarded-${name}`];
  const first = typeof value === "string" ? value.split(",")[0]?.trim() : undefined;
  return first !== undefined && pattern.test(first) ? first : undefined;
};

/**
 * This server's address for the client, with a proxy's `X-Forwarded-*`; undefined without a host. A caller that forges
 * them only harms itself.
 */
export const addressFor = (headers: Headers): string | undefined => {
  const host = forwarded(headers, "host", HOST) ?? headers.host;
  if (typeof host !== "string" || !HOST.test(host)) return undefined;
  const protocol = forwarded(headers, "proto", /^https?$/) ?? (LOOPBACK_HOST.test(host) ? "http" : undefined);
  const prefix = forwarded(headers, "prefix", PREFIX) ?? "";
  return `${protocol === undefined ? "" : `${protocol}:`}//${host}${prefix}`;
};

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const attribute = (text: string): string =>
  `"${text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? "")}"`;

/** JSON that is also JavaScript in old engines. */
const literal = (text: string): string =>
  JSON.stringify(text).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");

/** The loader replaces the first occurrence by an element's id. */
const SHADOW_ROOT_ID = "{{shadowRootId}}";

/** `crossorigin` sends the page's origin, since this server may restrict origins. */
export const uiFragment = (
  { globalName, script, styles }: UiBundle,
  { folder, component }: { folder: string; component: string },
): string => {
  const links = styles.map(
    ({ name }) => `<link rel="stylesheet" crossorigin="anonymous" href=${attribute(`${folder}/${name}`)}>`,
  );
  const call = `${globalName}.render(${literal(component)}, ${literal(SHADOW_ROOT_ID)})`;
  const source = attribute(`${folder}/${script.name}`);
  return [...links, `<script crossorigin="anonymous" src=${source} onload=${attribute(call)}></script>`].join(
    "\n",
  );
};
