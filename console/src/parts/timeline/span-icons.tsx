import { CircleAlert, CircleDashed, CirclePause, Sparkles, Workflow, Wrench } from "lucide-react";
import type { Span } from "./trace.ts";
import styles from "./timeline.module.css";

const KINDS = { node: Workflow, model: Sparkles, tool: Wrench };

export const KindIcon = ({ kind }: Pick<Span, "kind">) => {
  const Icon = KINDS[kind];
  return <Icon aria-hidden size={14} strokeWidth={1.75} className={styles[kind]} />;
};

/** In words for screen readers; nothing for a span that ended well. */
export const StateIcon = ({ status }: Pick<Span, "status">) => {
  if (status === "success" || status === "running") return null;
  const Icon = status === "error" ? CircleAlert : status === "lost" ? CircleDashed : CirclePause;
  return (
    <>
      <Icon aria-hidden size={14} strokeWidth={2} className={styles[`state-${status}`]} />
      <span className="unseen">{status}</span>
    </>
  );
};
