/**
 * What can be done with the records of each resource: the events that LangGraph's `Auth` knows. Runs are no resource of
 * their own: they belong to their threads. Reading, joining and streaming one is `read` of its thread, cancelling it
 * `update`, deleting it `delete`, creating it `create_run` and, since it executes an assistant, `read` of that. Creating a
 * cron creates runs later: it asks for all that creating a run does.
 *
 * Not only `read` and `search` answer what is stored: `update` answers the record, `create` an existing one (with `do_nothing`),
 * `create_run` what the run made of the state. A filter on what may be read has to hold for those, too.
 */
export interface Actions {
  assistants: "create" | "read" | "update" | "delete" | "search";
  threads: "create" | "read" | "update" | "delete" | "search" | "create_run";
  crons: "create" | "read" | "update" | "delete" | "search";
  store: "put" | "get" | "search" | "list_namespaces" | "delete";
}

export type Resource = keyof Actions;
