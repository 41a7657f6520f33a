import type { ImageProject } from "./project.ts";

const SECRET = "to the output of openssl rand -hex 32";

/** No secret has a default. */
export const composeText = ({ envFile }: ImageProject): string =>
  `# Made by 'threadloom compose'. Make the secrets once, then start it:
#
#   for name in DATABASE_PASSWORD API_KEYS; do echo "$name=$(openssl rand -hex 32)"; done >> .env
#   npx threadloom dockerfile --output Dockerfile && docker compose up --build
#
# None of them has a default: without one this file is refused.
services:
  postgres:
    image: \${POSTGRES_IMAGE:-postgres:18}
    environment:
      POSTGRES_USER: threadloom
      POSTGRES_PASSWORD: \${DATABASE_PASSWORD:?set DATABASE_PASSWORD in .env, ${SECRET}}
      POSTGRES_DB: threadloom
    volumes:
      - postgres-data:/var/lib/postgresql
    # What its entry point needs to hand the volume to its own user, and to become that user.
    cap_drop: [ALL]
    cap_add: [CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID]
    security_opt: ["no-new-privileges:true"]
    healthcheck:
      test: ["CMD-SHELL", "pg_isready --host 127.0.0.1 --username threadloom --dbname threadloom"]
      interval: 2s
      timeout: 3s
      retries: 30
    restart: unless-stopped

  threadloom:
    build: .
${
  envFile === undefined
    ? ""
    : `    # As env of langgraph.json says; it is not in the image.
    env_file:
      - path: ${JSON.stringify(envFile)}
        required: false
`
}    environment:
      DATABASE_URL: postgresql://threadloom:\${DATABASE_PASSWORD}@postgres:5432/threadloom
      API_KEYS: \${API_KEYS:?set API_KEYS in .env, ${SECRET}}
      BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "20"
      LANGGRAPH_AES_KEY: \${LANGGRAPH_AES_KEY:-}
    ports:
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

volumes:
  postgres-data:
`;
