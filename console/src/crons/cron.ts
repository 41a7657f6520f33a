export interface Cron {
  cron_id: string;
  assistant_id: string;
  thread_id: string | null;
  on_run_completed: "delete" | "keep" | null;
  end_time: string | null;
  schedule: string;
  timezone: string | null;
  created_at: string;
  payload: Record<string, unknown>;
  next_run_date: string | null;
  metadata: Record<string, unknown>;
  enabled: boolean;
  /** Why the server disabled the cron. */
  error: string | null;
}
