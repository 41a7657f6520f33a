import type { EventSource, RunEvent } from "./log.ts";

export interface RunChannelOptions extends EventSource {
  /** The id of the first event. */
  firstSeq: number;
  /** The run's user, who may read kept events after the run is gone. */
  userId?: string | undefined;
  /** Keep events without readers: the run's creator will read them, or they are logged. */
  keep: boolean;
  /**
   * For a resumable run: stores events before readers see them, so that a client can resume by id. One batch
   * at a time. After a failure readers are lost.
   */
  log?: (events: RunEvent[]) => Promise<void>;
}
