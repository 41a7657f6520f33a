import { expect, test } from "vitest";
import { createSdkLogger } from "../../src/graphs/logging.ts";
import { createLogger } from "../../src/platform/lib/logger.ts";

test("a graph may log a value of any size: its form in the log line is small", () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const sdkLogger = createSdkLogger(createLogger({ level: "info", destination }));
  sdkLogger.info("a picture", { picture: Buffer.alloc(2_000_000), list: Array.from({ length: 1_000 }) });
  sdkLogger.info({ message: Buffer.alloc(2_000_000) });
  const [picture, message] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(picture).toMatchObject({ msg: "a picture", fields: { picture: "(2000000 bytes)" } });
  expect(message).toMatchObject({ msg: '"(2000000 bytes)"' });
});
