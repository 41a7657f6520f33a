/**
 * The districts of src/ from the bottom up, and the rooms (folders) of each: a file imports from its own room and from what stands
 * before it. `.` is what stands in the folder of the district itself.
 */
const DISTRICTS = {
  platform: ["lib", "domain", "encryption", "database", "config"],
  state: ["values", "checkpoints"],
  graphs: ["project", "."],
  access: ["."],
  http: ["."],
  engine: ["queue", "events", ".", "outbox"],
  api: ["threads", "assistants", "runs", "crons", "status", "store"],
  protocols: ["streaming", "webhooks", "ui"],
  server: ["console", "custom-app", "key-rotation", "app", "embedding"],
  cli: ["import", "."],
  "main.ts": ["."],
} as const;

/** Rooms by their paths in src/, from the bottom up. */
export const ROOMS: readonly string[] = Object.entries(DISTRICTS).flatMap(([district, rooms]) =>
  rooms.map((room) => (room === "." ? district : `${district}/${room}`)),
);

const SMALLEST_FIRST = ROOMS.toSorted((a, b) => b.length - a.length);

/** The room of a file of src/; undefined if it stands in none. */
export const roomOf = (file: string): string | undefined =>
  SMALLEST_FIRST.find((room) => file === room || file.startsWith(`${room}/`));
