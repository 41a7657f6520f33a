import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { useState } from "react";
import { Confirmation } from "../design/dialog.tsx";
import { truncate } from "../design/truncate.ts";
import { ErrorNotice } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { useConnection } from "../server/connection.tsx";
import { Comparison } from "./comparison.tsx";
import { useAssistantChange } from "./queries.ts";
import styles from "./assistants.module.css";

const SHOWN_FIRST = 20;

interface VersionsProps {
  assistant: Assistant;
  /** Newest first. */
  versions: readonly AssistantVersion[];
}

export const Versions = ({ assistant, versions }: VersionsProps) => {
  const { client } = useConnection();
  const [shown, setShown] = useState(SHOWN_FIRST);
  const [activating, setActivating] = useState<number>();
  const activate = useAssistantChange((version: number) =>
    client.assistants.setLatest(assistant.assistant_id, version),
  );
  return (
    <div className="stack">
      <p className="faint">
        Runs use the active version. A version cannot be changed or deleted. To stop using one, activate
        another.
      </p>
      <ErrorNotice error={activate.error} />
      <Table label="Table of versions" columns={["Version", "Active", "Created", "Name"]}>
        {versions.slice(0, shown).map(({ version, name, created_at }) => (
          <tr key={version}>
            <td>{version}</td>
            <td>
              {version === assistant.version ? (
                <span className={styles.active}>active</span>
              ) : (
                <button
                  type="button"
                  className="small"
                  aria-label={`Activate version ${version}`}
                  disabled={activate.isPending}
                  onClick={() => setActivating(version)}
                >
                  Activate
                </button>
              )}
            </td>
            <td>
              <Time iso={created_at} />
            </td>
            <td className={styles.wide}>{truncate(name ?? "")}</td>
          </tr>
        ))}
      </Table>
      {versions.length > shown && (
        <div>
          <button type="button" onClick={() => setShown(shown + 100)}>
            Show more of {versions.length}
          </button>
        </div>
      )}
      {versions.length > 1 && <Comparison assistant={assistant} versions={versions} />}
      {activating !== undefined && (
        <Confirmation
          question={`Activate version ${activating}? Runs that start from now on use it.`}
          action={`Activate version ${activating}`}
          onConfirm={() => activate.mutate(activating)}
          onClose={() => setActivating(undefined)}
        />
      )}
    </div>
  );
};
