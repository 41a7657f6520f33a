import { useEffect, useRef } from "react";
import type { StreamGate } from "../../server/stream-gate.ts";
import type { ThreadRecord } from "../threads/thread-record.ts";

const CHECK_MS = 2_000;
/** Checks without a chunk after the server reported the end of the run. */
const SILENT_CHECKS = 3;

/**
 * A proxy may keep a connection open after its server died, so the end of a run never arrives. The page reads
 * the stored state if the server reports the end and the stream stays silent; a slow stream still sends.
 */
export const useMissedEnd = (
  record: ThreadRecord | null | undefined,
  isLoading: boolean,
  gate: StreamGate,
  reload: () => void,
): void => {
  /** The thread when this stream started: until it changes, the server may not know the new run yet. */
  const started = useRef<{ gate: StreamGate; revision: string }>(undefined);
  const revision = `${record?.status ?? "idle"} ${record?.state_updated_at ?? ""}`;
  const isBusy = record?.status === "busy";
  useEffect(() => {
    if (!isLoading) {
      started.current = undefined;
      return;
    }
    if (started.current?.gate !== gate) started.current = { gate, revision };
    if (isBusy || revision === started.current.revision) return;
    let { chunkCount } = gate;
    let silentChecks = 0;
    const timer = setInterval(() => {
      silentChecks = gate.chunkCount === chunkCount ? silentChecks + 1 : 0;
      chunkCount = gate.chunkCount;
      if (silentChecks >= SILENT_CHECKS || !gate.isOpen) reload();
    }, CHECK_MS);
    return () => clearInterval(timer);
  }, [gate, isBusy, isLoading, reload, revision]);
};
