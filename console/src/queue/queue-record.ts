/** `GET /queue`, for all servers that share the database. */
export interface Queue {
  num_pending: number;
  num_scheduled: number;
  num_running: number;
  oldest_seconds: number | null;
  is_complete: boolean;
  graphs: {
    graph_id: string;
    num_pending: number;
    num_running: number;
    oldest_seconds: number | null;
    is_hosted: boolean;
  }[];
  threads: { thread_id: string; graph_id: string; num_pending: number; oldest_seconds: number | null }[];
  servers: { server_id: string; num_running: number; seen_at: string | null; graph_ids: string[] }[];
  slots: { server_id: string; max: number; active: number } | null;
}

/** Empty: all pending runs. */
export interface PendingFilter {
  graph_id?: string;
  thread_id?: string;
}
