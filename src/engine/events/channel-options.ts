import type { EventSource, RunEvent } from "./log.ts";

/** What a channel of events is opened with. */
export interface RunChannelOptions extends EventSource {
  /** The id of the first event. */
  firstSeq: number;
  /** The user whose run it is: who may read what is kept when the run is gone. */
  userId?: string | undefined;
  /** Keep events also while nobody reads: the run's creator will, or they are logged. */
  keep: boolean;
  /**
   * Makes events durable before readers see them, for a resumable run: what was delivered with an id can be
   * read again by that id. Called with one batch at a time. Once it fails, readers are lost.
   */
  log?: (events: RunEvent[]) => Promise<void>;
}
