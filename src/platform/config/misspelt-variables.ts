import { distance } from "../lib/nearest-word.ts";
import { OPTIONS } from "./options.ts";
import { PROJECT_VARIABLES } from "./project-keys.ts";

/** More edits mean another word. */
const EDITS_AT_MOST = 2;
/** Shorter names resemble other names: HOST and HOME, PORT and SORT. */
const LETTERS_AT_LEAST = 7;
const LETTERS_AT_MOST = 60;
/** An environment may have thousands of variables. */
const VARIABLES_AT_MOST = 2_000;
const NAMED_AT_MOST = 5;

const OWN: readonly (readonly string[])[] = [
  ...Object.values(OPTIONS).map(({ environment }) => environment),
  ...[...PROJECT_VARIABLES, "LANGGRAPH_AES_LEGACY_KEY"].map((name) => [name]),
];

/** Names set variables that nearly match an unset option, without their values. */
export const misspeltVariables = (
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined => {
  const isSet = (name: string): boolean => Object.hasOwn(environment, name);
  const known = new Set(OWN.flat());
  const missing = OWN.filter((names) => !names.some(isSet))
    .flat()
    .filter((name) => name.length >= LETTERS_AT_LEAST);
  const found: string[] = [];
  for (const name of Object.keys(environment).slice(0, VARIABLES_AT_MOST)) {
    if (name.length < LETTERS_AT_LEAST || name.length > LETTERS_AT_MOST || known.has(name)) continue;
    const near = missing
      .filter(
        (own) => Math.abs(own.length - name.length) <= EDITS_AT_MOST && own.slice(0, 2) === name.slice(0, 2),
      )
      .map((own) => ({ own, edits: distance(name, own) }))
      .filter(({ edits }) => edits <= EDITS_AT_MOST)
      .sort((one, two) => one.edits - two.edits)[0];
    if (near !== undefined) found.push(`${name} (did you mean ${near.own}?)`);
    if (found.length === NAMED_AT_MOST) break;
  }
  return found.length === 0 ? undefined : `variables that this server does not know: ${found.join(", ")}`;
};
