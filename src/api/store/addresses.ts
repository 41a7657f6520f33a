import { storableText } from "../../platform/domain/json-schemas.ts";

export interface ItemAddress {
  namespace: string[];
  key: string;
}

/**
 * Bytes of UTF-8, plus `BYTES_PER_LABEL` per label. Namespace and key form one btree entry, which PostgreSQL limits to
 * 2,704 bytes.
 */
const KEY_BYTES_AT_MOST = 1_000;
const NAMESPACE_BYTES_AT_MOST = 1_500;
const BYTES_PER_LABEL = 8;

/** Reserved by LangGraph. */
const RESERVED_ROOT = "langgraph";

const isStorable = (text: string): boolean => storableText.safeParse(text).success;

/** Why a search can't use these labels, as the end of a sentence; else undefined. */
export const textComplaint = (labels: readonly unknown[]): string | undefined => {
  const index = labels.findIndex((label) => typeof label !== "string" || !isStorable(label));
  if (index === -1) return undefined;
  return typeof labels[index] === "string"
    ? `label ${index + 1} holds a NUL character or half a surrogate pair`
    : `label ${index + 1} is not a text`;
};

/** By LangGraph's rules. */
export const labelsComplaint = (labels: readonly unknown[]): string | undefined => {
  const complaint = textComplaint(labels);
  if (complaint !== undefined) return complaint;
  const empty = labels.indexOf("");
  if (empty !== -1) return `label ${empty + 1} is empty`;
  const dotted = labels.findIndex((label) => (label as string).includes("."));
  return dotted === -1 ? undefined : `label ${dotted + 1} contains a period`;
};

/** The rules for storing an item. */
export const namespaceComplaint = (namespace: readonly unknown[]): string | undefined => {
  if (namespace.length === 0) return "needs at least one label";
  const complaint = labelsComplaint(namespace);
  if (complaint !== undefined) return complaint;
  if (namespace[0] === RESERVED_ROOT) return `begins with '${RESERVED_ROOT}', which is reserved`;
  const bytes = (namespace as string[]).reduce(
    (sum, label) => sum + Buffer.byteLength(label) + BYTES_PER_LABEL,
    0,
  );
  return bytes > NAMESPACE_BYTES_AT_MOST
    ? `takes ${bytes} bytes (${BYTES_PER_LABEL} per label and its text); at most ${NAMESPACE_BYTES_AT_MOST} are possible`
    : undefined;
};

export const keyComplaint = (key: unknown): string | undefined => {
  if (typeof key !== "string") return "is not a text";
  if (!isStorable(key)) return "holds a NUL character or half a surrogate pair";
  const bytes = Buffer.byteLength(key);
  return bytes > KEY_BYTES_AT_MOST
    ? `takes ${bytes} bytes; at most ${KEY_BYTES_AT_MOST} are possible`
    : undefined;
};
