import type { Assistant } from "@langchain/langgraph-sdk";
import { useState } from "react";
import { Dialog } from "../design/dialog.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { useNavigate } from "../parts/use-navigate.ts";
import { useConnection } from "../server/connection.tsx";
import { useAssistantChange } from "./queries.ts";

export const DeleteDialog = ({ assistant, onClose }: { assistant: Assistant; onClose(): void }) => {
  const { client } = useConnection();
  const navigate = useNavigate();
  const [withThreads, setWithThreads] = useState(false);
  const remove = useAssistantChange(
    () => client.assistants.delete(assistant.assistant_id, { deleteThreads: withThreads }),
    () => navigate("/assistants"),
  );
  return (
    <Dialog title={`Delete ${assistant.name || "the assistant"}?`} onClose={onClose}>
      <p>This deletes all its versions and cannot be undone.</p>
      <label className="row">
        <input
          type="checkbox"
          checked={withThreads}
          onChange={({ target }) => setWithThreads(target.checked)}
        />
        Also delete the threads of its runs
      </label>
      <ErrorNotice error={remove.error} />
      <div className="row">
        <button type="button" className="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          Delete assistant
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </Dialog>
  );
};
