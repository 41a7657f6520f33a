import { Link } from "wouter";
import { truncate } from "../design/truncate.ts";
import { RecordLink, shortId } from "../parts/record-link.tsx";
import { Table } from "../parts/table.tsx";
import { durationText, Time } from "../parts/time.tsx";
import type { Queue, PendingFilter } from "./queue-record.ts";

export const waitText = (seconds: number | null): string =>
  seconds === null ? "–" : durationText(seconds * 1_000);

/** `of`: the name of the graph, thread or queue in the question. */
export type RequestCancel = (cancellation: { filter: PendingFilter; count: number; of: string }) => void;

export const GraphTable = ({ graphs, onCancel }: { graphs: Queue["graphs"]; onCancel: RequestCancel }) => (
  <Table
    label="By graph"

    columns={["Graph", "Pending", "Running", "Oldest pending for", "Servers", "Cancel"]}
  >
    {graphs.map(({ graph_id, num_pending, num_running, oldest_seconds, is_hosted }) => (
      <tr key={graph_id}>
        <td>
          <Link href={`/runs?status=pending&graph=${encodeURIComponent(graph_id)}`}>
            {truncate(graph_id)}
          </Link>
        </td>
        <td>{num_pending}</td>
        <td>{num_running}</td>
        <td>{waitText(oldest_seconds)}</td>
        <td>{is_hosted ? "available" : <strong>none</strong>}</td>
        <td>
          {num_pending > 0 && (
            <button
              type="button"
              className="plain danger small"
              aria-label={`Cancel ${num_pending} of ${graph_id}`}
              onClick={() =>
                onCancel({ filter: { graph_id }, count: num_pending, of: `the graph ${graph_id}` })
              }
            >
              Cancel {num_pending}
            </button>
          )}
        </td>
      </tr>
    ))}
  </Table>
);

export const ThreadTable = ({
  threads,
  onCancel,
}: {
  threads: Queue["threads"];
  onCancel: RequestCancel;
}) => (
  <Table label="By thread" columns={["Thread", "Graph", "Pending", "Oldest pending for", "Cancel"]}>
    {threads.map(({ thread_id, graph_id, num_pending, oldest_seconds }) => (
      <tr key={thread_id}>
        <td>
          <RecordLink id={thread_id} href={`/runs?status=pending&thread=${thread_id}`} />
        </td>
        <td>{truncate(graph_id)}</td>
        <td>{num_pending}</td>
        <td>{waitText(oldest_seconds)}</td>
        <td>
          <button
            type="button"
            className="plain danger small"
            aria-label={`Cancel ${num_pending} on thread ${thread_id}`}
            onClick={() =>
              onCancel({
                filter: { thread_id },
                count: num_pending,
                of: `the thread …${shortId(thread_id)}`,
              })
            }
          >
            Cancel {num_pending}
          </button>
        </td>
      </tr>
    ))}
  </Table>
);

export const ServerTable = ({ servers, slots }: Pick<Queue, "servers" | "slots">) => (
  <Table label="Servers" columns={["Server", "Running", "Slots", "Last seen", "Graphs"]}>
    {servers.map(({ server_id, num_running, seen_at, graph_ids }) => (
      <tr key={server_id}>
        <td title={server_id}>
          <code>…{shortId(server_id)}</code>
          {slots?.server_id === server_id && " (this one)"}
        </td>
        <td>{num_running}</td>
        <td>{slots?.server_id === server_id ? `${slots.active} of ${slots.max}` : "–"}</td>
        <td>{seen_at === null ? "over an hour ago" : <Time iso={seen_at} />}</td>
        <td>{graph_ids.join(", ")}</td>
      </tr>
    ))}
  </Table>
);
