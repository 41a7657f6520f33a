/** Each read of the thread returns the message, which may be a whole document. */
const MESSAGE_CHARACTERS_AT_MOST = 10_000;
const NAME_CHARACTERS_AT_MOST = 200;

/**
 * LangGraph (1.4.18) sets a property on thrown values, which fails for primitives. The message quotes the thrown value.
 */
const NO_ERROR =
  /^Cannot create property 'pregelTaskId' on \w+ '(.*)'$|^Cannot set properties of (null|undefined) \(setting 'pregelTaskId'\)$/s;

const cut = (text: string, charactersAtMost: number): string =>
  text.length <= charactersAtMost
    ? text
    : `${text.slice(0, charactersAtMost).toWellFormed()}… (${text.length} characters, cut)`;

export const describeThrown = (thrown: unknown): { name: string; message: string } => {
  if (typeof thrown !== "object" || thrown === null || !("message" in thrown)) {
    return { name: "Error", message: cut(textOf(thrown), MESSAGE_CHARACTERS_AT_MOST) };
  }
  const { name, message } = thrown as { name?: unknown; message: unknown };
  const [isNoError, text, nothing] = NO_ERROR.exec(String(message)) ?? [];
  if (isNoError !== undefined && name === "TypeError") {
    return { name: "Error", message: cut(text ?? nothing ?? "", MESSAGE_CHARACTERS_AT_MOST) };
  }
  return {
    name: cut(String(name || "Error"), NAME_CHARACTERS_AT_MOST),
    message: cut(textOf(message), MESSAGE_CHARACTERS_AT_MOST),
  };
};

/** Bounds a task's failure as LangGraph writes it (`{name, message}`). */
export const boundedFailure = (failure: unknown): unknown =>
  typeof failure === "object" &&
  failure !== null &&
  "message" in failure &&
  typeof failure.message === "string" &&
  "name" in failure &&
  Object.getPrototypeOf(failure) === Object.prototype
    ? { ...failure, ...describeThrown(failure) }
    : failure;

const textOf = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return String(value);
  try {
    return JSON.stringify(value) ?? "an object";
  } catch {
    return "an object"; // a cycle, or a bigint
  }
};
