import type { Assistant } from "@langchain/langgraph-sdk";
import { useId } from "react";
import { isOfGraph } from "../parts/assistants.ts";
import { truncate } from "../design/truncate.ts";

interface AssistantChoiceProps {
  assistants: readonly Assistant[];
  chosen: Assistant | undefined;
  isPending: boolean;
  onChoose(assistantId: string): void;
}

export const AssistantChoice = ({ assistants, chosen, isPending, onChoose }: AssistantChoiceProps) => {
  const id = useId();
  const graphs = assistants.filter(isOfGraph);
  const named = assistants.filter((one) => !isOfGraph(one));
  return (
    <span className="row">
      <label htmlFor={id} className="unseen">
        Assistant
      </label>
      <select id={id} value={chosen?.assistant_id ?? ""} onChange={({ target }) => onChoose(target.value)}>
        {chosen === undefined && <option value="">{isPending ? "" : "Choose an assistant"}</option>}
        <optgroup label="Graphs">
          {graphs.map(({ assistant_id, name }) => (
            <option key={assistant_id} value={assistant_id}>
              {name}
            </option>
          ))}
        </optgroup>
        {named.length > 0 && (
          <optgroup label="Assistants">
            {named.map(({ assistant_id, name, version, graph_id }) => (
              <option key={assistant_id} value={assistant_id}>
                {truncate(name)} (v{version}, {graph_id})
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </span>
  );
};
