import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { useInherited } from "./use-inherited.ts";

const NAMES_AT_MOST = 10;

/** Names the fields that a version which is not active gets from the default assistant of its graph. */
export const InheritedNotice = ({
  assistant,
  versions,
}: {
  assistant: Assistant;
  versions: readonly AssistantVersion[];
}) => {
  const known = useInherited(assistant);
  const others = versions.filter(({ version }) => version !== assistant.version);
  const inherited = new Set(others.flatMap((version) => known?.fieldsFor(version) ?? []));
  if (inherited.size === 0) return null;
  return (
    <p className="notice">
      A version that is not active runs on the default assistant of its graph. It gets from there what it does
      not set itself: {[...inherited].slice(0, NAMES_AT_MOST).join(", ")}.
    </p>
  );
};
