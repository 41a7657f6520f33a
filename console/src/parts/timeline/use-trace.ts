import { useQuery } from "@tanstack/react-query";
import { isOver } from "../run.ts";
import { useConnection } from "../../server/connection.tsx";
import { refetchEvery } from "../../server/refetch.ts";

import type { Trace } from "./trace.ts";

const POLL_MS = 1_000;

/** Read every second until the run is over. */
export const useTrace = (threadId: string | undefined, runId: string) => {
  const { request } = useConnection();
  return useQuery({
    queryKey: ["runs", "trace", runId],
    queryFn: () =>
      request<Trace>(
        "GET",
        `/threads/${encodeURIComponent(threadId ?? "")}/runs/${encodeURIComponent(runId)}/trace`,
      ),
    enabled: threadId !== undefined,
    refetchInterval: (query) =>
      refetchEvery(query.state.data !== undefined && !isOver(query.state.data) ? POLL_MS : false)(query),
  });
};

/** Only read if a price is shown. */
export const useCurrency = (isNeeded: boolean): string | undefined => {
  const { request } = useConnection();
  const { data } = useQuery({
    queryKey: ["usage", "currency"],
    queryFn: () =>
      request<{ currency: string | null }>("GET", "/usage?group_by=model&from=9999-12-31&to=9999-12-31"),
    enabled: isNeeded,
    staleTime: Infinity,
    retry: false,
  });
  return data?.currency ?? undefined;
};
