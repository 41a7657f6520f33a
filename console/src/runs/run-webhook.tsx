import { useQuery } from "@tanstack/react-query";
import { Skeleton } from "../design/skeleton.tsx";
import { Fields } from "../parts/fields.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Time } from "../parts/time.tsx";
import { statusOf } from "../server/api-error.ts";
import { useConnection } from "../server/connection.tsx";
import type { Delivery } from "./run-record.ts";
import styles from "./run-page.module.css";

const POLL_MS = 2_000;

export const RunWebhook = ({ runId }: { runId: string }) => {
  const { request } = useConnection();
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["webhooks", runId],
    queryFn: () => request<Delivery>("GET", `/webhooks/deliveries/${runId}`),
    retry: false,
    refetchInterval: ({ state }) => (state.data?.state === "pending" ? POLL_MS : false),
  });
  const time = (iso: string | null) => (iso === null ? undefined : <Time iso={iso} />);
  return (
    <section className={styles.pane} aria-label="Webhook">
      {isPending && <Skeleton lines={2} label="Loading the webhook" />}
      {statusOf(error) === 404 ? (
        <p className="faint">No delivery is stored: the run has not ended, or the record has expired.</p>
      ) : (
        <ErrorNotice error={error} onRetry={() => void refetch()} />
      )}
      {data !== undefined && (
        <Fields
          fields={[
            ["Address", data.url],
            ["State", data.state],
            ["Failures", data.failures],
            ["Answered", data.last_status ?? undefined],
            ["Error", data.last_error ?? undefined],
            ["Last try", time(data.last_attempt_at)],
            ["Next try", time(data.next_attempt_at)],
          ]}
        />
      )}
    </section>
  );
};
