/**
 * The events of LangGraph's `Auth`. Reading, joining or streaming a run is `read` of its thread, cancelling `update`,
 * deleting `delete`, and creating `create_run` plus `read` of the assistant, also for crons.
 *
 * Read filters also apply to `update`, `create` with `do_nothing` and `create_run`, because they return stored data.
 */
export interface Actions {
  assistants: "create" | "read" | "update" | "delete" | "search";
  threads: "create" | "read" | "update" | "delete" | "search" | "create_run";
  crons: "create" | "read" | "update" | "delete" | "search";
  store: "put" | "get" | "search" | "list_namespaces" | "delete";
}

export type Resource = keyof Actions;
