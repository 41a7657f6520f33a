import { useMemo } from "react";
import { useSearchParams } from "wouter";

/** In the address, so that users can share a search. */
const FILTERS = ["status", "graph", "assistant", "thread", "from", "to", "metadata"] as const;
export type RunFilter = Readonly<Record<(typeof FILTERS)[number], string>>;

/** A JSON object, or `name=value`. The server refuses other values, and says why. */
export const metadataOf = (text: string): unknown => {
  const [, name, value] = /^\s*([^={]+?)\s*=\s*(.*?)\s*$/s.exec(text) ?? [];
  if (name !== undefined) return Object.fromEntries([[name, value]]);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** `from` and `to` are ISO 8601 times. */
export const bodyOf = ({ status, graph, assistant, thread, from, to, metadata }: RunFilter): object => ({
  ...(status !== "" && { status }),
  ...(graph !== "" && { graph_id: graph }),
  ...(assistant !== "" && { assistant_id: assistant }),
  ...(thread !== "" && { thread_id: thread }),
  ...(from !== "" && { created_after: from }),
  ...(to !== "" && { created_before: to }),
  ...(metadata !== "" && { metadata: metadataOf(metadata) }),
});

export const useRunFilter = () => {
  const [params, setParams] = useSearchParams();
  const text = params.toString();
  const filter = useMemo(() => {
    const given = new URLSearchParams(text);
    return Object.fromEntries(FILTERS.map((name) => [name, given.get(name) ?? ""])) as unknown as RunFilter;
  }, [text]);
  const changed = (changes: Readonly<Record<string, string>>): URLSearchParams => {
    const next = new URLSearchParams(text);
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") next.delete(name);
      else next.set(name, value);
    }
    return next;
  };
  return {
    filter,
    /** Older links name a run here. */
    runId: params.get("run") ?? undefined,
    change: (changes: Readonly<Record<string, string>>): void => {
      setParams(changed(changes), { replace: true });
    },
    clear: (): void => {
      setParams(changed(Object.fromEntries(FILTERS.map((name) => [name, ""]))), { replace: true });
    },
  };
};
