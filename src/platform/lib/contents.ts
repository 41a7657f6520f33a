const CAUSES_AT_MOST = 5;
const MESSAGE_AT_MOST = 200;
const FRAMES_AT_MOST = 30;
const TAIL_CHARACTERS = 1_000;
const FRAME = /^\s+at .{1,500}:\d+:\d+\)?$/;
/** Matches classes and codes. Any other text may contain user data. */
const WORD = /^[\w$.:-]{1,100}$/;

class GraphError {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

/** The logger writes the error's message only if the server logs contents. */
export const markedOfGraph = (error: unknown): object => new GraphError(error);

export const errorMarkedOfGraph = (value: unknown): { error: unknown } | undefined =>
  value instanceof GraphError ? value : undefined;

/** The message contains no user data. */
export interface WithoutContents {
  readonly hidesContents: true;
}

/** The message of the cause may contain user data. */
export interface CausedByProject {
  readonly causedByProject: true;
}

export const isCausedByProject = (error: Error): boolean =>
  (error as Partial<CausedByProject>).causedByProject === true;

const isOwn = (error: Error): boolean => (error as Partial<WithoutContents>).hidesContents === true;

const wordIn = (value: unknown): string | undefined =>
  typeof value === "string" && WORD.test(value) ? value : undefined;

/** Skips the message at the start of a stack, because the message may contain such a line. */
const framesOf = ({ stack, message }: Error): string => {
  const text = String(stack ?? "");
  const tail = message.slice(-TAIL_CHARACTERS);
  const end = tail === "" ? -1 : text.lastIndexOf(tail);
  return text
    .slice(end < 0 ? 0 : end + tail.length)
    .split("\n")
    .filter((line) => FRAME.test(line))
    .slice(0, FRAMES_AT_MOST)
    .join("\n");
};

export const fieldsWithoutContents = (error: unknown, causes = CAUSES_AT_MOST): unknown => {
  if (!(error instanceof Error)) return { type: typeof error, message: withheld(textLength(error)) };
  const { code, lc_error_code: langChainCode } = error as { code?: unknown; lc_error_code?: unknown };
  const further = (one: unknown): unknown => fieldsWithoutContents(one, causes - 1);
  const known = wordIn(code) ?? wordIn(langChainCode);
  return {
    type: wordIn(error.name) ?? "Error",
    message: isOwn(error) ? error.message.slice(0, MESSAGE_AT_MOST) : withheld(String(error.message).length),
    stack: framesOf(error),
    ...(known === undefined ? {} : { code: known }),
    ...(error.cause !== undefined && causes > 0 ? { cause: further(error.cause) } : {}),
    ...(error instanceof AggregateError && causes > 0
      ? { errors: error.errors.slice(0, causes).map(further) }
      : {}),
  };
};

const textLength = (thrown: unknown): number => (typeof thrown === "string" ? thrown.length : 0);

const withheld = (characters: number): string =>
  `(withheld, ${characters} characters: LOG_CONTENTS=true logs what users say)`;
