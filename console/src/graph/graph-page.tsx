import { useQuery } from "@tanstack/react-query";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { PageHead } from "../design/page-head.tsx";
import { GraphView } from "../parts/graph/graph-view.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { Choices } from "./choices.tsx";
import styles from "./graph-page.module.css";

/** The assistant of the address, else of the thread, else the first one. */
const useChosenAssistant = (threadId: string | undefined) => {
  const { client } = useConnection();
  const { assistantId: named } = useParams<{ assistantId?: string }>();
  return useQuery({
    queryKey: ["assistants", "chosen", named ?? null, named === undefined ? (threadId ?? null) : null],
    queryFn: async (): Promise<string | null> => {
      if (named !== undefined) return (await client.assistants.get(named)).assistant_id;
      if (threadId !== undefined) {
        const { metadata } = await client.threads.get(threadId);
        const ofThread: unknown = metadata?.["assistant_id"];
        return typeof ofThread === "string" ? ofThread : null;
      }
      const [first] = await client.assistants.search({ limit: 1, sortBy: "name", sortOrder: "asc" });
      return first?.assistant_id ?? null;
    },
  });
};

export default function GraphPage() {
  const threadId = new URLSearchParams(useSearch()).get("thread") ?? undefined;
  const [, navigate] = useLocation();
  const { data: chosen, error } = useChosenAssistant(threadId);
  const assistantId = chosen ?? undefined;
  return (
    <div className={styles.page}>
      <PageHead
        title="Graph"
        actions={
          threadId !== undefined && (
            <>
              <Link href={`/threads/${threadId}`}>Playground</Link>
              <Link href={`/threads/${threadId}/history`}>Time travel</Link>
            </>
          )
        }
      >
        <Choices
          assistantId={assistantId}
          threadId={threadId}
          onChoose={({ assistant, thread }) =>
            navigate(
              `/graph/${encodeURIComponent(assistant)}${thread === undefined ? "" : `?thread=${encodeURIComponent(thread)}`}`,
            )
          }
        />
      </PageHead>
      <ErrorNotice error={error} />
      {assistantId === undefined ? (
        chosen === null && <Empty>No assistant is selected. Choose one.</Empty>
      ) : (
        <GraphView key={assistantId} assistantId={assistantId} threadId={threadId} />
      )}
    </div>
  );
}
