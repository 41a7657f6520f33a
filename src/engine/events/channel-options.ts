import type { EventSource, RunEvent } from "./log.ts";

export interface RunChannelOptions extends EventSource {
  firstSeq: number;
  /** May read kept events after the run is gone. */
  userId?: string | undefined;
  keep: boolean;
  /**
   * For a resumable run: stores events before readers see them, so that a client can resume by id. After a
   * failure readers are lost.
   */
  log?: (events: RunEvent[]) => Promise<void>;
}
