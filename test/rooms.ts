import { existsSync, readFileSync } from "node:fs";

/**
 * The districts of src/ from the bottom up, and the rooms (folders) of each: a file imports from its own room and from earlier ones. `.`
 * stands for the files in the district's own folder.
 */
const DISTRICTS = {
  platform: ["lib", "domain", "encryption", "database", "config", "telemetry", "metrics"],
  state: ["values", "checkpoints"],
  graphs: ["project", "."],
  access: ["."],
  http: ["."],
  engine: ["queue", "events", ".", "outbox"],
  api: ["threads", "assistants", "runs", "usage", "crons", "status", "store"],
  protocols: ["streaming", "webhooks", "ui", "calls", "mcp", "a2a", "agui"],
  server: ["console", "custom-app", "key-rotation", "app", "embedding"],
  cli: ["."],
  "main.ts": ["."],
} as const;

/** Rooms by their paths in src/, from the bottom up. */
export const ROOMS: readonly string[] = Object.entries(DISTRICTS).flatMap(([district, rooms]) =>
  rooms.map((room) => (room === "." ? district : `${district}/${room}`)),
);

const SMALLEST_FIRST = ROOMS.toSorted((a, b) => b.length - a.length);

/** The room of a file of src/; undefined if it is in none. */
export const roomOf = (file: string): string | undefined =>
  SMALLEST_FIRST.find((room) => file === room || file.startsWith(`${room}/`));

/** The district of a file of src/. */
export const districtOf = (file: string): string => file.split("/", 1)[0] ?? file;

/** Lines like "- `queue/`: `attempts.ts`, `columns.ts`" of the section "Front" in a district's README. */
const frontOf = (district: string): string[] => {
  const readme = new URL(`../src/${district}/README.md`, import.meta.url);
  const front = existsSync(readme) ? (readFileSync(readme, "utf8").split("\n## Front\n")[1] ?? "") : "";
  return [...front.matchAll(/^- `([\w./-]+)\/`: (.+)$/gm)].flatMap(([, folder = "", list = ""]) =>
    [...list.matchAll(/`([\w.-]+)`/g)].map(([, file = ""]) =>
      [district, ...(folder === "." ? [] : [folder]), file].join("/"),
    ),
  );
};

/** The files of src/ that other districts may import. */
export const fronts: ReadonlySet<string> = new Set(Object.keys(DISTRICTS).flatMap(frontOf));
