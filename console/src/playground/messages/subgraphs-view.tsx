import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { JsonView } from "../../parts/json.tsx";
import { Empty, ErrorNotice } from "../../parts/notice.tsx";
import { Content, Reasoning, reasoningBeside } from "./content.tsx";
import type { Subgraph } from "./subgraphs.ts";
import { nameOfType, rowsOf, typeOf, type ShownMessage } from "./messages.ts";
import { stepsOf, ToolResult, ToolSteps } from "./tool-call.tsx";
import styles from "./subgraphs.module.css";

/** Per subgraph; time travel shows all. */
const MESSAGES_AT_MOST = 50;

/** Read-only. */
export const SubgraphMessages = ({
  messages,
  isGrowing = false,
}: {
  messages: readonly ShownMessage[];
  isGrowing?: boolean;
}) => {
  const shown = messages.slice(-MESSAGES_AT_MOST);
  const rows = rowsOf(shown, []);
  return (
    <>
      {messages.length > shown.length && (
        <p className="faint">
          The last {shown.length} of {messages.length} messages.
        </p>
      )}
      {rows.map(({ key, message, more, results }, index) => {
        const reasoning = reasoningBeside(message.additional_kwargs);
        const grows = isGrowing && index === rows.length - 1;
        return (
          <div key={key} className={styles.message}>
            <p className={styles.name}>{nameOfType(typeOf(message))}</p>
            {reasoning !== undefined && <Reasoning text={reasoning} />}
            {typeOf(message) === "tool" ? (
              <ToolResult message={message} />
            ) : (
              <Content content={message.content} isGrowing={grows} />
            )}
            <ToolSteps steps={stepsOf(message, more, results)} isRunning={isGrowing} />
          </div>
        );
      })}
    </>
  );
};

interface SubgraphsProps {
  threadId: string;
  /** The id of a message or a tool call. */
  of: string;
  /** Changes when there may be more subgraphs. */
  revision: string;
  read(): Promise<Subgraph[]>;
  /** Whether to say that there are no subgraphs. */
  showsEmpty?: boolean;
}

/** The subgraphs behind a message or a tool call. */
export const Subgraphs = ({ threadId, of, revision, read, showsEmpty = false }: SubgraphsProps) => {
  const graphs = useQuery({
    queryKey: ["threads", "inner-graphs", threadId, of, revision],
    queryFn: read,
    staleTime: Infinity,
    // The result may be large, and opening it reads it again.
    gcTime: 0,
  });
  if (showsEmpty && graphs.data?.length === 0)
    return <p className="faint">No subgraph worked on this message.</p>;
  if (graphs.isPending) return <p className="faint">Loading…</p>;
  if (graphs.isError) return <ErrorNotice error={graphs.error} onRetry={() => void graphs.refetch()} />;
  const count = graphs.data.length;
  return graphs.data.map(({ node, namespace, messages, others }, index) => (
    <section
      key={namespace}
      className={styles.graph}
      aria-label={count > 1 ? `Inside ${node}, ${index + 1} of ${count}` : `Inside ${node}`}
    >
      <p className="row">
        <strong>Inside {node}</strong>
        <Link href={`/threads/${threadId}/history?namespace=${encodeURIComponent(namespace)}`}>
          Its checkpoints
        </Link>
      </p>
      {messages.length > 0 && <SubgraphMessages messages={messages} />}
      {Object.keys(others).length > 0 && <JsonView value={others} depth={0} />}
      {messages.length === 0 && Object.keys(others).length === 0 && <Empty>It stored nothing.</Empty>}
    </section>
  ));
};
