import { useMemo } from "react";
import { useSearchParams } from "wouter";

/** In the address, so that users can share a search. */
const FILTERS = ["status", "graph", "assistant", "thread", "from", "to"] as const;
export type RunFilter = Readonly<Record<(typeof FILTERS)[number], string>>;

/** `from` and `to` are ISO 8601 times. */
export const bodyOf = ({ status, graph, assistant, thread, from, to }: RunFilter): object => ({
  ...(status !== "" && { status }),
  ...(graph !== "" && { graph_id: graph }),
  ...(assistant !== "" && { assistant_id: assistant }),
  ...(thread !== "" && { thread_id: thread }),
  ...(from !== "" && { created_after: from }),
  ...(to !== "" && { created_before: to }),
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
    runId: params.get("run") ?? undefined,
    change: (changes: Readonly<Record<string, string>>): void => {
      setParams(changed(changes), { replace: true });
    },
    pathOf: (runId: string): string => `/runs?${changed({ run: runId })}`,
    clear: (): void => {
      setParams(changed(Object.fromEntries(FILTERS.map((name) => [name, ""]))), { replace: true });
    },
  };
};
