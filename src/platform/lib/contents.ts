const CAUSES_AT_MOST = 5;
const MESSAGE_AT_MOST = 200;
const FRAMES_AT_MOST = 30;
const TAIL_CHARACTERS = 1_000;
const FRAME = /^\s+at .{1,500}:\d+:\d+\)?$/;
/** Matches classes and codes. Any other text may contain user data. */
const WORD = /^[\w$.:-]{1,100}$/;

/** The logger writes the error's message only if the server logs contents. */
export class GraphError {
  constructor(readonly error: unknown) {}
}

export const markedOfGraph = (error: unknown): object => new GraphError(error);

/** The message contains no user data. */
export interface WithoutContents {
  readonly hidesContents: true;
}

/** The message of the cause may contain user data. */
export interface CausedByProject {
  readonly causedByProject: true;
}

const isCausedByProject = (error: Error): boolean =>
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

/**
 * The fields of a log line. Other properties are left out: a library or a graph may attach the request with its API key.
 * `shows`: whether the log may hold contents, and those of errors that the project caused.
 */
export const errorFields = (
  error: unknown,
  shows: { contents: boolean; ofProject: boolean },
  causes = CAUSES_AT_MOST,
): unknown => {
  if (!(error instanceof Error)) {
    if (!shows.contents) return { type: typeof error, message: withheld(textLength(error)) };
    return typeof error === "object" && error !== null ? "(an object)" : error;
  }
  const {
    code,
    constraint,
    lc_error_code: langChainCode,
  } = error as Error & Readonly<Record<string, unknown>>;
  const ofCauses = { ...shows, contents: shows.contents && (shows.ofProject || !isCausedByProject(error)) };
  const further = (one: unknown): unknown => errorFields(one, ofCauses, causes - 1);
  const own = isOwn(error) ? error.message.slice(0, MESSAGE_AT_MOST) : withheld(String(error.message).length);
  const known = shows.contents ? code : (wordIn(code) ?? wordIn(langChainCode));
  return {
    type: shows.contents ? error.name : (wordIn(error.name) ?? "Error"),
    message: shows.contents ? error.message : own,
    stack: shows.contents ? error.stack : framesOf(error),
    ...(typeof known === "string" ? { code: known } : {}),
    ...(typeof constraint === "string" && shows.contents ? { constraint } : {}),
    ...(error.cause !== undefined && causes > 0 ? { cause: further(error.cause) } : {}),
    ...(error instanceof AggregateError && causes > 0
      ? { errors: error.errors.slice(0, causes).map(further) }
      : {}),
  };
};

const textLength = (thrown: unknown): number => (typeof thrown === "string" ? thrown.length : 0);

const withheld = (characters: number): string =>
  `(withheld, ${characters} characters: LOG_CONTENTS=true logs what users say)`;
