import { useMessages } from "@langchain/react";
import { useEffect, useState } from "react";
import { Status } from "../parts/status.tsx";
import { InnerMessages } from "./inner-graphs-view.tsx";
import type { LiveStream } from "./live-thread.ts";
import type { ShownMessage } from "./messages.ts";
import styles from "./inner-graphs.module.css";

/** Each is one more filter of what the server sends. */
const SHOWN_AT_MOST = 6;

interface LifecycleEvent {
  method: string;
  params: { namespace: string[]; data?: { event?: string } };
}

/** The names of graphs at work directly within the thread's, as `node:task`, in the order in which they have begun. */
const useGraphsAtWork = (stream: LiveStream): readonly string[] => {
  const [atWork, setAtWork] = useState<readonly string[]>([]);
  const thread = stream.getThread();
  useEffect(() => {
    if (thread === undefined) return;
    const stop = thread.onEvent((event) => {
      const { method, params } = event as unknown as LifecycleEvent;
      if (method !== "lifecycle") return;
      const { namespace, data } = params;
      const [name] = namespace;
      const begins = data?.event === "started" || data?.event === "running";
      if (name === undefined) {
        if (!begins) setAtWork([]);
      } else if (namespace.length === 1) {
        setAtWork((known) => {
          if (known.includes(name) === begins) return known;
          return begins ? [...known, name] : known.filter((one) => one !== name);
        });
      }
    });
    return () => {
      stop();
      setAtWork([]);
    };
  }, [thread]);
  return atWork;
};

const GraphAtWork = ({ stream, name }: { stream: LiveStream; name: string }) => {
  const messages = useMessages(stream, [name]) as readonly ShownMessage[];
  const node = name.split(":", 1)[0] ?? name;
  return (
    <details className={styles.live} open>
      <summary>
        Inside <strong>{node}</strong> <Status status="running" />
      </summary>
      <InnerMessages messages={messages} isGrowing />
    </details>
  );
};

/** What graphs within the thread's say while they work: below the message whose tools have called them, or the node of which they are. */
export const LiveGraphs = ({ stream }: { stream: LiveStream }) => {
  const atWork = useGraphsAtWork(stream);
  const shown = atWork.slice(0, SHOWN_AT_MOST);
  if (shown.length === 0) return null;
  return (
    <section className="stack" aria-label="Graphs at work">
      {shown.map((name) => (
        <GraphAtWork key={name} stream={stream} name={name} />
      ))}
      {atWork.length > shown.length && <p className="faint">and {atWork.length - shown.length} more</p>}
    </section>
  );
};
