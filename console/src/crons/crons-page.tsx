import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { Clock } from "lucide-react";
import { useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import { assistantText, useAssistantNames } from "../parts/assistants.ts";
import { Confirmation } from "../design/dialog.tsx";
import { EmptyState } from "../design/empty-state.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";
import { CronForm } from "./cron-form.tsx";
import { CronRuns } from "./cron-runs.tsx";
import { CronTable } from "./cron-table.tsx";
import type { Cron } from "./cron.ts";
import { scheduleWords } from "./schedule-words.ts";

const PAGE = 50;
/** The limit of the API. */
const SHOWN_AT_MOST = 1_000;
const POLL_MS = 5_000;

type OpenDialog = { kind: "new" } | { kind: "edit" | "delete"; cron: Cron };

export default function CronsPage() {
  const { request, search } = useConnection();
  const queries = useQueryClient();
  const [params, setParams] = useSearchParams();
  const [limit, setLimit] = useState(PAGE);
  const [dialog, setDialog] = useState<OpenDialog>();
  const [fault, setFault] = useState<unknown>();
  const { data, error } = useQuery({
    queryKey: ["crons", limit],
    queryFn: () => search<Cron>("/runs/crons/search", { limit, sort_by: "next_run_date", sort_order: "asc" }),
    placeholderData: keepPreviousData,
    refetchInterval: refetchEvery(POLL_MS),
  });
  const { data: found } = useAssistantNames();
  const assistants = useMemo(
    () => (found ?? []).map((one) => ({ assistant_id: one.assistant_id, name: assistantText(one) })),
    [found],
  );
  const assistantNames = useMemo(
    () => new Map(assistants.map(({ assistant_id, name }) => [assistant_id, name])),
    [assistants],
  );

  const change = async (method: string, path: string, body?: unknown): Promise<void> => {
    await request(method, path, body);
    await queries.invalidateQueries({ queryKey: ["crons"] });
  };
  /** For actions without a dialog. */
  const changeHere = async (method: string, path: string, body?: unknown): Promise<void> => {
    setFault(undefined);
    await change(method, path, body).catch(setFault);
  };
  const cronId = params.get("cron");

  return (
    <div className="stack">
      <PageHead
        title="Crons"
        actions={
          <button
            type="button"
            className="primary"
            disabled={found === undefined}
            onClick={() => setDialog({ kind: "new" })}
          >
            New cron
          </button>
        }
      >
        <span role="status" className="faint">
          {data?.total === undefined ? "" : data.total === 1 ? "1 cron" : `${data.total} crons`}
        </span>
      </PageHead>
      <ErrorNotice error={error ?? fault} />
      {data === undefined && error === null && <Skeleton lines={6} />}
      {data?.items.length === 0 && (
        <EmptyState icon={Clock} title="There are no crons.">
          A cron starts a run at the times of a schedule, for example every morning at 8.
        </EmptyState>
      )}
      {data !== undefined && data.items.length > 0 && (
        <CronTable
          crons={data.items}
          assistantNames={assistantNames}
          onToggle={({ cron_id, enabled }) =>
            void changeHere("PATCH", `/runs/crons/${cron_id}`, { enabled: !enabled })
          }
          onEdit={(cron) => setDialog({ kind: "edit", cron })}
          onDelete={(cron) => setDialog({ kind: "delete", cron })}
        />
      )}
      {data?.hasMore === true && limit < SHOWN_AT_MOST && (
        <div>
          <button type="button" onClick={() => setLimit(limit + PAGE)}>
            Show more
          </button>
        </div>
      )}
      {data?.hasMore === true && limit >= SHOWN_AT_MOST && (
        <p className="faint">These are the {SHOWN_AT_MOST} crons that fire next. There are more.</p>
      )}
      {dialog?.kind === "new" && (
        <CronForm
          cron={undefined}
          assistants={assistants}
          onSave={(fields, threadId) =>
            change(
              "POST",
              threadId === undefined ? "/runs/crons" : `/threads/${encodeURIComponent(threadId)}/runs/crons`,
              fields,
            )
          }
          onClose={() => setDialog(undefined)}
        />
      )}
      {dialog?.kind === "edit" && (
        <CronForm
          cron={dialog.cron}
          assistants={assistants}
          onSave={(fields) => change("PATCH", `/runs/crons/${dialog.cron.cron_id}`, fields)}
          onClose={() => setDialog(undefined)}
        />
      )}
      {dialog?.kind === "delete" && (
        <Confirmation
          question={`Delete cron ${scheduleWords(dialog.cron.schedule) ?? dialog.cron.schedule}?`}
          action="Delete"
          onConfirm={() => void changeHere("DELETE", `/runs/crons/${dialog.cron.cron_id}`)}
          onClose={() => setDialog(undefined)}
        />
      )}
      {cronId !== null && (
        <CronRuns key={cronId} cronId={cronId} onClose={() => setParams({}, { replace: true })} />
      )}
    </div>
  );
}
