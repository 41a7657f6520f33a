import { createRequire } from "node:module";

/** TypeScript 7 is a program without the interface by which types are read; `npm install typescript` brings it. */
const FIRST_WITHOUT_INTERFACE = 7;

const INSTALL = "(npm install --save-dev typescript@5)";

/**
 * Why schemas can't be read from source, without a full stop; undefined if they can: the project has to have TypeScript, which this
 * package does not bring.
 */
export const missingCompiler = (): string | undefined => {
  try {
    const { version } = createRequire(import.meta.url)("typescript/package.json") as { version: string };
    if (Number.parseInt(version, 10) < FIRST_WITHOUT_INTERFACE) return undefined;
    return `TypeScript ${version} can't read the source for others ${INSTALL}`;
  } catch {
    return `TypeScript, which reads the source, is not installed ${INSTALL}`;
  }
};
