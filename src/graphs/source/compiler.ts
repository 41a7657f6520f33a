import { createRequire } from "node:module";

/** TypeScript 7 has no API to read types, and `npm install typescript` installs it. */
const FIRST_WITHOUT_INTERFACE = 7;

export const canReadTypes = (version: string): boolean =>
  Number.parseInt(version, 10) < FIRST_WITHOUT_INTERFACE;

const INSTALL = "(npm install --save-dev typescript@5)";

/** Without a full stop. TypeScript comes from the project, not from this package. */
export const missingCompiler = (): string | undefined => {
  try {
    const { version } = createRequire(import.meta.url)("typescript/package.json") as { version: string };
    if (canReadTypes(version)) return undefined;
    return `TypeScript ${version} has no API to read types ${INSTALL}`;
  } catch {
    return `TypeScript, which reads types, is not installed ${INSTALL}`;
  }
};
