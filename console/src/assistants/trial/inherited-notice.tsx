import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { isObject } from "../../parts/is-object.ts";
import { useOneAssistant } from "../queries.ts";

const NAMES_AT_MOST = 10;

const fieldsOf = (value: unknown): string[] => (isObject(value) ? Object.keys(value) : []);

/** Names the fields that a version which is not active gets from the default assistant of its graph. */
export const InheritedNotice = ({
  assistant,
  versions,
}: {
  assistant: Assistant;
  versions: readonly AssistantVersion[];
}) => {
  const { data } = useOneAssistant(assistant.graph_id);
  const others = versions.filter(({ version }) => version !== assistant.version);
  if (data === undefined) return null;
  const inherited = new Set(
    others.flatMap(({ context, config }) => [
      ...fieldsOf(data.context).filter((name) => !fieldsOf(context).includes(name)),
      ...fieldsOf(data.config).filter((name) => !fieldsOf(config).includes(name)),
    ]),
  );
  if (inherited.size === 0) return null;
  return (
    <p className="notice">
      A version that is not active runs on the default assistant of its graph. It gets from there what it does
      not set itself: {[...inherited].slice(0, NAMES_AT_MOST).join(", ")}.
    </p>
  );
};
