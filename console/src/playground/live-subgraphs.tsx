import { useMessages } from "@langchain/react";
import { useEffect, useState } from "react";
import { Status } from "../parts/status.tsx";
import { InnerMessages } from "./subgraphs-view.tsx";
import type { LiveStream } from "./live-thread.ts";
import type { ShownMessage } from "./messages.ts";
import styles from "./subgraphs.module.css";

/** Each is one more filter of what the server sends. */
const SHOWN_AT_MOST = 6;

interface LifecycleEvent {
  method: string;
  params: { namespace: string[]; data?: { event?: string } };
}

/** Where a graph within the thread's stands: `node:task` of each graph around it, and of its own. */
type Place = readonly string[];

const isWithin = (place: Place, around: Place): boolean =>
  around.every((segment, depth) => place[depth] === segment);

/** The places of graphs at work, however deep, in the order in which they have begun. */
const useGraphsAtWork = (stream: LiveStream): readonly Place[] => {
  const [atWork, setAtWork] = useState<readonly Place[]>([]);
  const thread = stream.getThread();
  useEffect(() => {
    if (thread === undefined) return;
    const stop = thread.onEvent((event) => {
      const { method, params } = event as unknown as LifecycleEvent;
      if (method !== "lifecycle") return;
      const { namespace, data } = params;
      const begins = data?.event === "started" || data?.event === "running";
      if (begins && namespace.length === 0) return;
      setAtWork((known) => {
        if (!begins) return known.filter((place) => !isWithin(place, namespace));
        const isKnown = known.some(
          (place) => place.length === namespace.length && isWithin(place, namespace),
        );
        return isKnown ? known : [...known, namespace];
      });
    });
    return () => {
      stop();
      setAtWork([]);
    };
  }, [thread]);
  return atWork;
};

const nodeOf = (segment: string): string => segment.split(":", 1)[0] ?? segment;

const GraphAtWork = ({ stream, place }: { stream: LiveStream; place: Place }) => {
  const messages = useMessages(stream, place) as readonly ShownMessage[];
  return (
    <details className={styles.live} open>
      <summary>
        Inside <strong>{place.map(nodeOf).join(" › ")}</strong> <Status status="running" />
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
    <section className="stack" aria-label="Running subgraphs">
      {shown.map((place) => (
        <GraphAtWork key={place.join("|")} stream={stream} place={place} />
      ))}
      {atWork.length > shown.length && <p className="faint">and {atWork.length - shown.length} more</p>}
    </section>
  );
};
