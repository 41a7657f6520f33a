import { posix } from "node:path";
import type { ImageProject } from "./project.ts";

const SECRET = "to the output of openssl rand -hex 32";
/** Compose reads it for the variables of its own file. */
const COMPOSE_ENVIRONMENT = ".env";

const environmentFiles = (envFile: string): string => {
  const files = new Set([COMPOSE_ENVIRONMENT, posix.normalize(envFile.replaceAll("\\", "/"))]);
  return [...files]
    .map((file) => `      - path: ${JSON.stringify(file)}\n        required: false\n`)
    .join("");
};

/** A variable that is empty here would hide that of `env_file`. */
const ofEnvironmentFiles = (envFile: string | undefined): string =>
  envFile === undefined
    ? ""
    : `    # As env of langgraph.json says; not in the image.
    env_file:
${environmentFiles(envFile)}`;

const requestBody = (graph: string): string =>
  JSON.stringify({
    assistant_id: graph,
    input: { messages: [{ role: "user", content: "Hello" }] },
    stream_mode: ["updates"],
  }).replaceAll("'", String.raw`'\''`);

/** No secret has a default. */
export const composeText = ({ envFile, graphs: [graph = "agent"] }: ImageProject): string =>
  `# Made by 'threadloom compose' for Docker Compose 2.24 and newer. Make the Dockerfile and the secrets, then start. Each step may
# be repeated:
#
#   npx threadloom dockerfile --output Dockerfile
#   for name in DATABASE_PASSWORD API_KEYS; do
#     grep -qs "^$name=." .env || printf '\\n%s=%s\\n' "$name" "$(openssl rand -hex 32)" >> .env
#   done
#   docker compose up --build --detach --wait
#
# The first request, with the API key:
#
#   API_KEY=$(sed -n 's/^API_KEYS=\\([^,]*\\).*/\\1/p' .env | tail -n 1)
#   curl -N http://127.0.0.1:8123/runs/stream -H "x-api-key: $API_KEY" \\
#     -H 'content-type: application/json' -d '${requestBody(graph)}'
#
# No secret has a default: without one this file is refused.
services:
  postgres:
    image: \${POSTGRES_IMAGE:-postgres:18}
    environment:
      # The superuser, for administrators: docker compose exec postgres psql --username postgres threadloom
      POSTGRES_USER: postgres
      # A random password that nobody knows: from other containers, nobody is the superuser.
      POSTGRES_PASSWORD_FILE: /proc/sys/kernel/random/uuid
      POSTGRES_DB: threadloom
      DATABASE_PASSWORD: \${DATABASE_PASSWORD:?set DATABASE_PASSWORD in .env, ${SECRET}}
    configs:
      - source: role.sql
        target: /docker-entrypoint-initdb.d/role.sql
    volumes:
      - postgres-data:/var/lib/postgresql
    # What its entry point needs to hand the volume to its own user, and to become that user.
    cap_drop: [ALL]
    cap_add: [CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID]
    security_opt: ["no-new-privileges:true"]
    healthcheck:
      test: ["CMD-SHELL", "pg_isready --host 127.0.0.1 --username postgres --dbname threadloom"]
      interval: 2s
      timeout: 3s
      retries: 30
    restart: unless-stopped

  threadloom:
    build: .
${ofEnvironmentFiles(envFile)}    environment:
      DATABASE_URL: postgresql://threadloom_user:\${DATABASE_PASSWORD}@postgres:5432/threadloom
      DATABASE_SCHEMA: threadloom
      API_KEYS: \${API_KEYS:?set API_KEYS in .env, ${SECRET}}
      # In the container; PORT of .env is the port of this machine.
      HOST: 0.0.0.0
      PORT: "8123"
      BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "20"
${envFile === undefined ? "      LANGGRAPH_AES_KEY:\n" : ""}    ports:
      - "127.0.0.1:\${PORT:-8123}:8123"
    # The server writes no file. A graph that does needs a volume of its own.
    read_only: true
    tmpfs: ["/tmp:size=64m,mode=1777"]
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    mem_limit: \${MEMORY_LIMIT:-2g}
    pids_limit: 512
    init: true
    depends_on:
      postgres:
        condition: service_healthy
    # The grace period above, and the time to hand back what did not finish in it.
    stop_grace_period: 40s
    restart: unless-stopped

configs:
  # Run once, while the volume is empty: makes the server's role, which owns one schema and is no superuser.
  role.sql:
    content: |
      \\getenv password DATABASE_PASSWORD
      create role threadloom_user login password :'password' nosuperuser nocreatedb nocreaterole noinherit;
      create schema threadloom authorization threadloom_user;
      revoke create on schema public from public;

volumes:
  postgres-data:
`;
