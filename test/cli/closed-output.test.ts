import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { writingTo } from "../../src/cli/run-command.ts";

test("a reader that stops, like head, does not end a command with a stack", async () => {
  const closed = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })),
  });
  const ended = new Promise<void>((resolve) => closed.once("close", resolve));
  writingTo(closed)("a line\n");
  await ended;
  expect(closed.listenerCount("error")).toBe(1);
});
