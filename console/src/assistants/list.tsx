import { useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { isOfGraph, useGraphIds } from "../parts/assistants.ts";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { truncate } from "../design/truncate.ts";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { CreateDialog } from "./create-dialog.tsx";
import { PAGE_SIZE, useAssistantPage, type AssistantFilter } from "./queries.ts";
import styles from "./assistants.module.css";

export const AssistantList = () => {
  const [filter, setFilter] = useState<AssistantFilter>({ name: "", graphId: "", page: 0 });
  const [isCreating, setIsCreating] = useState(false);
  const graphs = useGraphIds();
  const { data, error, refetch, isPending } = useAssistantPage(useDeferredValue(filter));
  const narrow = (part: Partial<AssistantFilter>): void => setFilter({ ...filter, page: 0, ...part });
  const first = filter.page * PAGE_SIZE;
  return (
    <div className="stack">
      <div className="row">
        <h1>Assistants</h1>
        <button type="button" className={`primary ${styles.last}`} onClick={() => setIsCreating(true)}>
          New assistant
        </button>
      </div>
      <p className="faint">
        An assistant is a graph with its own configuration, in versions. Each graph has a default assistant.
      </p>
      <search className="row">
        <label className="row">
          Name
          <input
            type="search"
            value={filter.name}
            onChange={({ target }) => narrow({ name: target.value })}
          />
        </label>
        <label className="row">
          Graph
          <select value={filter.graphId} onChange={({ target }) => narrow({ graphId: target.value })}>
            <option value="">All graphs</option>
            {graphs.data?.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </search>
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {isPending && <p className="faint">Loading…</p>}
      {data !== undefined && data.assistants.length === 0 && <Empty>No assistant matches.</Empty>}
      {data !== undefined && data.assistants.length > 0 && (
        <Table label="Assistants" columns={["Name", "Graph", "Version", "Updated"]}>
          {data.assistants.map((assistant) => (
            <tr key={assistant.assistant_id}>
              <td className={styles.wide}>
                <Link href={`/assistants/${encodeURIComponent(assistant.assistant_id)}`}>
                  {truncate(assistant.name) || "Unnamed"}
                </Link>
                {isOfGraph(assistant) && <span className="faint"> default</span>}
                {assistant.description && <div className="faint">{assistant.description.slice(0, 300)}</div>}
              </td>
              <td>{truncate(assistant.graph_id)}</td>
              <td>{assistant.version}</td>
              <td>
                <Time iso={assistant.updated_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {data !== undefined && data.total > PAGE_SIZE && (
        <nav className="row" aria-label="Pages of assistants">
          <button
            type="button"
            disabled={filter.page === 0}
            onClick={() => narrow({ page: filter.page - 1 })}
          >
            Previous
          </button>
          <span role="status">
            {first + 1}–{Math.min(first + PAGE_SIZE, data.total)} of {data.total}
          </span>
          <button
            type="button"
            disabled={first + PAGE_SIZE >= data.total}
            onClick={() => narrow({ page: filter.page + 1 })}
          >
            Next
          </button>
        </nav>
      )}
      {isCreating && <CreateDialog graphId={filter.graphId} onClose={() => setIsCreating(false)} />}
    </div>
  );
};
