export interface StoreExpiry {
  /** Minutes after the last read or write; undefined for never. */
  defaultMinutes: number | undefined;
  /** Whether a read restarts the time. */
  refreshOnRead: boolean;
  /** Expired items are hidden before. */
  sweepIntervalMinutes?: number | undefined;
}

/** LangGraph's default: only items with their own TTL expire, counted from their last read or write. */
export const DEFAULT_EXPIRY: StoreExpiry = { defaultMinutes: undefined, refreshOnRead: true };
