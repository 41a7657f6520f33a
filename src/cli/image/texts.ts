import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { ownField } from "../../platform/lib/names.ts";
import { SETTINGS } from "./installing.ts";
import type { ImageProject } from "./project.ts";

const FOLDER = new URL("../../../templates/image/", import.meta.url);

interface Places {
  readonly texts: Readonly<Record<string, string>>;
  readonly facts: Readonly<Record<string, boolean>>;
}

/** Fills `{{place}}`, and keeps the lines between `{{#fact}}` and `{{/fact}}` if the fact is true. */
const filled = (template: string, { texts, facts }: Places): string =>
  readFileSync(new URL(template, FOLDER), "utf8")
    .replace(/^\{\{#(\w+)\}\}\n([^]*?)^\{\{\/\1\}\}\n/gm, (_, fact: string, lines: string) =>
      ownField(facts, fact) ? lines : "",
    )
    .replace(/\{\{(\w+)\}\}/g, (_, place: string) => ownField(texts, place) ?? "");

/** Compose reads it for the variables of its own file. */
const COMPOSE_ENVIRONMENT = ".env";

/** No secret has a default. A variable that is empty in the text would hide that of `env_file`. */
export const composeText = ({ envFile, graphs: [graph = "agent"] }: ImageProject): string => {
  const files = new Set([COMPOSE_ENVIRONMENT, posix.normalize((envFile ?? "").replaceAll("\\", "/"))]);
  const body = {
    assistant_id: graph,
    input: { messages: [{ role: "user", content: "Hello" }] },
    stream_mode: ["updates"],
  };
  return filled("compose", {
    facts: { withFile: envFile !== undefined, withoutFile: envFile === undefined },
    texts: {
      body: JSON.stringify(body).replaceAll("'", String.raw`'\''`),
      files: [...files]
        .map((file) => `      - path: ${JSON.stringify(file)}\n        required: false`)
        .join("\n"),
    },
  });
};

const namesText = (names: readonly string[]): string => names.map((name) => `-name '${name}'`).join(" -o ");
/** These may hold secrets, whatever .dockerignore says. */
const UNWANTED = ["node_modules", ".env", ".env.*", ".git", ".threadloom"];

/** npm installs nothing if a folder is missing that package.json names: then all files are there before it runs. */
export const dockerfileText = (project: ImageProject): string => {
  const { configFile, nodeVersion, dockerfileLines, installation, readsTypesWithDevelopment } = project;
  const { install, installAll, files, needsProject } = installation;
  return filled("Dockerfile", {
    facts: {
      ofProject: needsProject,
      ofLock: !needsProject,
      readsApart: readsTypesWithDevelopment,
      readsApartOfLock: readsTypesWithDevelopment && !needsProject,
      readsApartOfProject: readsTypesWithDevelopment && needsProject,
      readsHere: !readsTypesWithDevelopment,
    },
    texts: {
      node: nodeVersion,
      lines: dockerfileLines.map((line) => `${line}\n`).join(""),
      install,
      installAll,
      manifests: ["package.json", ...files].join(" "),
      config: JSON.stringify(configFile),
      unwanted: namesText(UNWANTED),
      settings: namesText(SETTINGS),
      less: 'echo "The console will show fields that only TypeScript types describe as plain JSON."',
    },
  });
};
