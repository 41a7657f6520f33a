import { useEffect, useRef } from "react";
import type { StreamGate } from "../../server/stream-gate.ts";
import type { ThreadRecord } from "../threads/thread-record.ts";

interface StreamStatus {
  isLoading: boolean;
  messages: readonly unknown[];
}

/** A new run may have stored nothing to join yet. Each further try waits longer by this time. */
const REJOIN_MS = 4_000;

interface ForeignRunOptions {
  gate: StreamGate;
  /** Whether the stored state is not shown yet. */
  isReading: boolean;
  isSending: { readonly current: boolean };
  reload(): void;
}

/** An idle thread has no open stream, so polling finds the runs of other clients. */
export const useForeignRuns = (
  record: ThreadRecord | null | undefined,
  { isLoading, messages }: StreamStatus,
  { gate, isReading, isSending, reload }: ForeignRunOptions,
): void => {
  const isEmpty = messages.length === 0;
  const reloadedFor = useRef<string>(undefined);
  const seen = useRef<string>(undefined);
  const tries = useRef(0);
  const hasJoined = useRef(false);
  useEffect(() => {
    hasJoined.current = false;
  }, [gate]);
  if (isLoading) hasJoined.current = true;
  const isMissed = record?.status === "busy" && !isLoading && !isReading;
  useEffect(() => {
    if (isLoading) tries.current = 0;
    if (!isMissed) return;
    const timer = setTimeout(
      () => {
        tries.current += 1;
        reload();
      },
      REJOIN_MS * (tries.current + 1),
    );
    return () => clearTimeout(timer);
  }, [gate, isLoading, isMissed, reload]);
  useEffect(() => {
    if (record == null || isReading) return;
    const now = `${record.status} ${record.state_updated_at ?? record.updated_at}`;
    const hasChanged = seen.current !== undefined && seen.current !== now;
    seen.current = now;
    // A stream of a hidden tab does not report the end of a run.
    if (isSending.current || (isLoading && (gate.isOpen || record.status === "busy"))) return;
    // A hook that received values without valid messages ignores later messages too. The stored state has all
    // of them.
    const hasNoMessages =
      isEmpty && record.status !== "busy" && record.state_updated_at != null && reloadedFor.current !== now;
    if (hasNoMessages) reloadedFor.current = now;
    if (hasNoMessages || (hasChanged && !(hasJoined.current && gate.isOpen))) reload();
  }, [record, isLoading, isReading, isEmpty, gate, isSending, reload]);
};
