import type { Assistant } from "@langchain/langgraph-sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Dialog } from "../design/dialog.tsx";
import { useConnection } from "../server/connection.tsx";
import { DraftForm, type AssistantDraft } from "./draft.tsx";
import { useAssistantChange } from "./queries.ts";

const revisionOf = ({ version, updated_at }: Assistant): string => `${version} ${updated_at}`;

/** @param props.next the number of the version that is made */
export const EditDialog = ({
  assistant,
  next,
  onClose,
}: {
  assistant: Assistant;
  next: number;
  onClose(): void;
}) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const { assistant_id, graph_id, name, description, context, config, metadata } = assistant;
  const [seen, setSeen] = useState(revisionOf(assistant));
  const update = useAssistantChange(async (draft: AssistantDraft) => {
    // A version replaces all fields, so saving would silently undo concurrent changes.
    const now = await client.assistants.get(assistant_id);
    if (revisionOf(now) !== seen) {
      setSeen(revisionOf(now));
      await queries.invalidateQueries({ queryKey: ["assistants"] });
      throw new Error(
        `The assistant has changed since you opened it: version ${now.version} is active now. ` +
          "Your version does not contain these changes. Save again to create it anyway.",
      );
    }
    return client.assistants.update(assistant_id, { ...draft });
  }, onClose);
  return (
    <Dialog title={`Edit ${name || "the assistant"}`} onClose={onClose}>
      <DraftForm
        graphId={graph_id}
        initial={{
          ...{ name, description: description ?? "", context: context ?? {}, config },
          metadata: (metadata ?? {}) as Record<string, unknown>,
        }}
        action={`Save as version ${next}`}
        isBusy={update.isPending}
        error={update.error}
        onSubmit={(draft) => update.mutate(draft)}
      >
        <p className="notice">
          Saving creates version {next} and activates it. The version has only the context and the config
          shown here. Metadata are added to the existing metadata.
        </p>
      </DraftForm>
    </Dialog>
  );
};
