/** How long items live, where a request does not say: the server's setting. */
export interface StoreExpiry {
  /** Minutes without a read or a write after which an item expires; undefined for never. */
  defaultMinutes: number | undefined;
  /** Whether a read starts an item's time anew. */
  refreshOnRead: boolean;
  /** Minutes between two removals of expired items, which nobody sees in between; undefined: the server's own. */
  sweepIntervalMinutes?: number | undefined;
}

/** As LangGraph's: items stay for ever; those with a time to live count it from their last read or write. */
export const DEFAULT_EXPIRY: StoreExpiry = { defaultMinutes: undefined, refreshOnRead: true };
