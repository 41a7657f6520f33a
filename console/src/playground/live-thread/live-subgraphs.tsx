import { useMessages } from "@langchain/react";
import { useEffect, useState } from "react";
import { Status } from "../../parts/status.tsx";
import { SubgraphMessages } from "../messages/subgraphs-view.tsx";
import type { LiveStream } from "./live-thread.ts";
import type { ShownMessage } from "../messages/messages.ts";
import styles from "../messages/subgraphs.module.css";

/** Each subgraph adds a filter on the server. */
const SHOWN_AT_MOST = 6;

interface LifecycleEvent {
  method: string;
  params: { namespace: string[]; data?: { event?: string } };
}

/** `node:task` per level. */
type Namespace = readonly string[];

const isWithin = (namespace: Namespace, outer: Namespace): boolean =>
  outer.every((segment, depth) => namespace[depth] === segment);

/** All levels, oldest first. */
const useRunningSubgraphs = (stream: LiveStream): readonly Namespace[] => {
  const [running, setRunning] = useState<readonly Namespace[]>([]);
  const thread = stream.getThread();
  useEffect(() => {
    if (thread === undefined) return;
    const stop = thread.onEvent((event) => {
      const { method, params } = event as unknown as LifecycleEvent;
      if (method !== "lifecycle") return;
      const { namespace, data } = params;
      const begins = data?.event === "started" || data?.event === "running";
      if (begins && namespace.length === 0) return;
      setRunning((known) => {
        if (!begins) return known.filter((one) => !isWithin(one, namespace));
        const isKnown = known.some((one) => one.length === namespace.length && isWithin(one, namespace));
        return isKnown ? known : [...known, namespace];
      });
    });
    return () => {
      stop();
      setRunning([]);
    };
  }, [thread]);
  return running;
};

const nodeOf = (segment: string): string => segment.split(":", 1)[0] ?? segment;

const RunningSubgraph = ({ stream, namespace }: { stream: LiveStream; namespace: Namespace }) => {
  const messages = useMessages(stream, namespace) as readonly ShownMessage[];
  return (
    <details className={styles.live} open>
      <summary>
        Inside <strong>{namespace.map(nodeOf).join(" › ")}</strong> <Status status="running" />
      </summary>
      <SubgraphMessages messages={messages} isGrowing />
    </details>
  );
};

export const LiveSubgraphs = ({ stream }: { stream: LiveStream }) => {
  const running = useRunningSubgraphs(stream);
  const shown = running.slice(0, SHOWN_AT_MOST);
  if (shown.length === 0) return null;
  return (
    <section className="stack" aria-label="Running subgraphs">
      {shown.map((namespace) => (
        <RunningSubgraph key={namespace.join("|")} stream={stream} namespace={namespace} />
      ))}
      {running.length > shown.length && <p className="faint">and {running.length - shown.length} more</p>}
    </section>
  );
};
