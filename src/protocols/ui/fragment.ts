import type { UiBundle } from "./bundle.ts";

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
