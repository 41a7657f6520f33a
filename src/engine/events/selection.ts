export interface EventSelection {
  /** Event names by their part before `|`; undefined: all. */
  modes?: ReadonlySet<string> | undefined;
  /** Namespaces without those below them; `""` is the root graph. Undefined: all. */
  namespaces?: readonly string[] | undefined;
}

const ALWAYS_SENT = new Set(["metadata", "error"]);

/** As in `updates|research:1b4e…|read:7a…`. */
const SEPARATOR = "|";

const modeOf = (event: string): string => {
  const end = event.search(/[|/]/);
  return end === -1 ? event : event.slice(0, end);
};

const isOfMode = (mode: string, modes: ReadonlySet<string>): boolean =>
  modes.has(mode) || (mode === "messages" && modes.has("messages-tuple"));

/** `node:taskid` or the node alone, because a run's creator can't know task ids. */
const isSamePart = (part: string, asked: string): boolean =>
  part === asked || part.slice(0, part.lastIndexOf(":")) === asked;

const isOfNamespace = (parts: readonly string[], asked: string): boolean => {
  const askedParts = asked === "" ? [] : asked.split(SEPARATOR);
  return (
    parts.length === askedParts.length && parts.every((part, at) => isSamePart(part, askedParts[at] ?? ""))
  );
};

/** `updates` also selects `updates|namespace`. */
export const isSelected = (event: string, { modes, namespaces }: EventSelection): boolean => {
  if (modes === undefined && namespaces === undefined) return true;
  const mode = modeOf(event);
  if (ALWAYS_SENT.has(mode)) return true;
  if (modes !== undefined && !isOfMode(mode, modes)) return false;
  if (namespaces === undefined) return true;
  const [, ...parts] = event.split(SEPARATOR);
  return namespaces.some((namespace) => isOfNamespace(parts, namespace));
};
