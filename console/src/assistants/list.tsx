import { Bot, Plus } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { isOfGraph, useGraphIds } from "../parts/assistants.ts";
import { EmptyState } from "../design/empty-state.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { useCommands, type Command } from "../parts/commands.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { truncate } from "../design/truncate.ts";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { CreateDialog } from "./create-dialog.tsx";
import { PAGE_SIZE, useAssistantPage, type AssistantFilter } from "./queries.ts";
import styles from "./assistants.module.css";

/** Enter opens a link that has the focus. */
const focusNeighbour = (step: 1 | -1): void => {
  const links = [...document.querySelectorAll<HTMLElement>(`.${styles.listed} a`)];
  const now = links.findIndex((link) => link === document.activeElement);
  links[now < 0 ? 0 : Math.min(Math.max(now + step, 0), links.length - 1)]?.focus();
};

const COMMANDS: readonly Command[] = [
  { label: "Next assistant", group: "Assistant", keys: "j", run: () => focusNeighbour(1) },
  { label: "Previous assistant", group: "Assistant", keys: "k", run: () => focusNeighbour(-1) },
];

export const AssistantList = () => {
  const [filter, setFilter] = useState<AssistantFilter>({ name: "", graphId: "", page: 0 });
  const [isCreating, setIsCreating] = useState(false);
  const graphs = useGraphIds();
  const { data, error, refetch, isPending } = useAssistantPage(useDeferredValue(filter));
  const narrow = (part: Partial<AssistantFilter>): void => setFilter({ ...filter, page: 0, ...part });
  const isNarrowed = filter.name !== "" || filter.graphId !== "";
  useCommands(COMMANDS);
  const first = filter.page * PAGE_SIZE;
  return (
    <div className="stack">
      <PageHead
        title="Assistants"
        actions={
          <button type="button" className="primary" onClick={() => setIsCreating(true)}>
            <Plus aria-hidden size={16} strokeWidth={1.75} />
            New assistant
          </button>
        }
      >
        <search className="row">
          <input
            type="search"
            aria-label="Name"
            placeholder="Search by name"
            value={filter.name}
            onChange={({ target }) => narrow({ name: target.value })}
          />
          <select
            aria-label="Graph"
            value={filter.graphId}
            onChange={({ target }) => narrow({ graphId: target.value })}
          >
            <option value="">All graphs</option>
            {graphs.data?.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </search>
      </PageHead>
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {isPending && <Skeleton lines={10} />}
      {data !== undefined && data.assistants.length === 0 && (
        <EmptyState
          icon={Bot}
          title={isNarrowed ? "No assistant matches." : "No assistants yet"}
          action={
            isNarrowed ? (
              <button type="button" onClick={() => narrow({ name: "", graphId: "" })}>
                Show all assistants
              </button>
            ) : undefined
          }
        >
          An assistant is a graph with its own configuration, in versions.
        </EmptyState>
      )}
      {data !== undefined && data.assistants.length > 0 && (
        <Table label="Assistants" columns={["Name", "Graph", "Version", "Updated"]}>
          {data.assistants.map((assistant) => (
            <tr key={assistant.assistant_id} className={styles.listed}>
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
