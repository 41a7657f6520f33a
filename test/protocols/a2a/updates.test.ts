import { expect, test } from "vitest";
import type { StreamResponse } from "@a2a-js/sdk";
import { createArtifactUpdates } from "../../../src/protocols/a2a/tasks.ts";
import { assembled } from "./clients.ts";

/** The artifact that a client sees while several models write at once. */

const writing = () => {
  const updates = createArtifactUpdates({ id: "task", threadId: "context" });
  const sent: StreamResponse["payload"][] = [];
  const written = new Map<string, string>();
  return {
    sent,
    written,
    /** Returns what the client shows then. */
    write(id: string, content: string): string {
      written.set(id, (written.get(id) ?? "") + content);
      const message = { type: "ai", id, content, tool_call_chunks: [] };
      const update = updates.of({ seq: 1, event: "messages", data: [message, {}] });
      if (update !== undefined) sent.push(update.payload);
      return assembled(sent);
    },
  };
};

test("of two messages written in turn, a client shows one of them, whole, at each moment", () => {
  const { write, written, sent } = writing();
  for (let index = 0; index < 200; index += 1)
    for (const id of ["one", "two"]) {
      const shown = write(id, `${id}${index} `);
      expect([...written.values()]).toContain(shown);
    }
  expect(JSON.stringify(sent).length).toBeLessThan(200_000);
});

test("a message that goes on beside a short one is shown again, with all of its text", () => {
  const { write } = writing();
  write("long", "The first part of it");
  expect(write("short", "Done.")).toBe("Done.");
  expect(write("long", ", and the second")).toBe("The first part of it, and the second");
  expect(write("long", ", and the third")).toBe("The first part of it, and the second, and the third");
});
