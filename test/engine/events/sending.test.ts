import { expect, test } from "vitest";
import type { RunEvent } from "../../../src/engine/events/log.ts";
import { sendRunEvents } from "../../../src/engine/events/transports/server-sent-events.ts";
import { aBareApp } from "../../helpers/parts.ts";

const PIECE = 64 * 1024;

test("a large event is written in pieces, each after the reader took the last one, and arrives unchanged", async () => {
  // A cut may fall between the two halves of a character.
  const events: RunEvent[] = ["", "a"].map((shift, seq) => ({
    seq,
    event: "values",
    data: JSON.stringify(shift + "😀".repeat(1_000_000)),
  }));
  const small: RunEvent = { seq: 2, event: "values", data: "{}" };
  const lengths: number[] = [];
  const { app } = await aBareApp({
    routes: [
      async (routes) => {
        routes.get("/stream", { sse: "manual" }, async (_request, reply) => {
          const write = reply.raw.write.bind(reply.raw) as (text: string) => boolean;
          reply.raw.write = ((text: string) => {
            lengths.push(text.length);
            return write(text);
          }) as typeof reply.raw.write;
          const pages = [[...events, small]];
          await sendRunEvents(reply, {
            next: async () => pages.pop() ?? "ended",
            close: () => undefined,
          });
        });
      },
    ],
  });
  try {
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    const text = await (await fetch(`${url}/stream`)).text();
    const frames = [...events, small].map(
      ({ seq, event, data }) => `id: ${seq}\nevent: ${event}\ndata: ${data}\n\n`,
    );
    expect(text === frames.join("")).toBe(true);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(PIECE);
  } finally {
    await app.close();
  }
});
