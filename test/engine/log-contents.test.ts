import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { startTestServer } from "../helpers/app.ts";
import { TEST_KEYS } from "../helpers/encryption.ts";

/** The log of failed runs must contain nothing that users said. */

const FAILURES = [
  ["an error of a graph, and its cause", "failing", (word: string) => ({ reason: word })],
  ["an error of a library", "agent", (word: string) => ({ messages: [{ role: "nobody", content: word }] })],
  ["an error of a reducer", "counter", (word: string) => ({ messages: { [word]: word } })],
] as const;

test.each([
  ["with encryption", [...TEST_KEYS]],
  ["without encryption", []],
])("the log contains no user text when a graph fails, %s", async (_name, encryptionKeys) => {
  const server = await startTestServer({ encryptionKeys });
  try {
    const api = apiOf(server);
    for (const [what, assistantId, inputOf] of FAILURES) {
      const word = `canary${randomBytes(12).toString("hex")}`;
      const before = server.lines.length;
      const answer = await api.post<object>("/runs/wait", {
        assistant_id: assistantId,
        input: inputOf(word),
      });
      expect(JSON.stringify(answer.body), what).toContain(word);
      const lines = server.lines.slice(before);
      expect(
        lines.filter((line) => line.includes(word)),
        what,
      ).toEqual([]);
      expect(
        lines.find((line) => line.includes("the graph failed")),
        what,
      ).toMatch(/"type":"\w*Error"/);
    }
  } finally {
    await server.close();
  }
});
