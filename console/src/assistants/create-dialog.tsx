import { useState } from "react";
import { useGraphIds } from "../parts/assistants.ts";
import { Dialog } from "../design/dialog.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { useNavigate } from "../parts/use-navigate.ts";
import { useConnection } from "../server/connection.tsx";
import { DraftForm, type AssistantDraft } from "./draft.tsx";
import { useAssistantChange } from "./queries.ts";

const EMPTY: AssistantDraft = { name: "", description: "", context: {}, config: {}, metadata: {} };

export const CreateDialog = ({ graphId, onClose }: { graphId: string; onClose(): void }) => {
  const { client } = useConnection();
  const navigate = useNavigate();
  const graphs = useGraphIds();
  const [chosen, setChosen] = useState(graphId);
  const graph = chosen === "" ? (graphs.data?.[0] ?? "") : chosen;
  const create = useAssistantChange(
    ({ name, description, context, config, metadata }: AssistantDraft) =>
      client.assistants.create({
        ...{ graphId: graph, name, context, config, metadata },
        ...(description !== "" && { description }),
      }),
    ({ assistant_id }) => navigate(`/assistants/${encodeURIComponent(assistant_id)}`),
  );
  return (
    <Dialog title="New assistant" onClose={onClose}>
      <ErrorNotice error={graphs.error} onRetry={() => void graphs.refetch()} />
      {graph !== "" && (
        <DraftForm
          key={graph}
          graphId={graph}
          initial={EMPTY}
          action="Create assistant"
          isBusy={create.isPending}
          error={create.error}
          onSubmit={(draft) => create.mutate(draft)}
        >
          <div className="row">
            <label htmlFor="graph-of-new">Graph</label>
            <select id="graph-of-new" value={graph} onChange={({ target }) => setChosen(target.value)}>
              {graphs.data?.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </div>
        </DraftForm>
      )}
    </Dialog>
  );
};
