import type * as Sdk from "@langchain/langgraph-sdk";

/** A line of the JavaScript SDK in common use; installed side by side (see devDependencies). */
export interface SdkLine {
  version: string;
  package: string;
  /** This line requests the run when a stream ends, and reconnects if the run is still active. */
  asksAfterEnd?: true;
  /** It has `client.threads.stream`. */
  eventStreaming?: true;
}

const ALL: SdkLine[] = [
  { version: "1.8.10", package: "sdk-1.8" },
  { version: "1.9.31", package: "sdk-1.9", eventStreaming: true },
  { version: "1.11.0", package: "sdk-1.11", eventStreaming: true },
  { version: "1.12.4", package: "@langchain/langgraph-sdk", eventStreaming: true },
  { version: "1.15.0", package: "sdk-1.15", asksAfterEnd: true, eventStreaming: true },
  { version: "2.0.0", package: "sdk-2.0" },
];

/**
 * `.ci/run` uses the two newest with the largest difference: the last that retries every request, and the first that asks for the run's
 * status.
 */
const USUAL = ["1.12.4", "1.15.0"];

/** All in `npm run test:clients`. */
export const LINES = ALL.filter(({ version }) => process.env.SDK_LINES === "all" || USUAL.includes(version));

/** The name of a line in docs/compatibility.md. */
export const columnOf = ({ version }: SdkLine): string => `SDK ${version}`;

/** The module of a line, with the types of the line that this project depends on. */
export const load = async (line: SdkLine): Promise<typeof Sdk> => (await import(line.package)) as typeof Sdk;
