import { useEffect, useRef } from "react";
import type { StreamGate } from "../server/stream-gate.ts";
import type { ThreadRecord } from "./thread-record.ts";

const CHECK_MS = 2_000;
/** How often nothing has come, after the server has said that the run is over. */
const SILENT_CHECKS = 3;

/**
 * A proxy may keep the connection of a browser open when the server behind it has gone: the end of a run is never told, nor that
 * nothing more comes. So when the server says that the run which is listened to is over, and the stream stays silent, what is stored
 * is read anew. Not on the server's word alone: on a slow line the end of the answer may still be coming.
 */
export const useMissedEnd = (
  record: ThreadRecord | null | undefined,
  isLoading: boolean,
  gate: StreamGate,
  reload: () => void,
): void => {
  /** How the thread stood as it began to be listened to: a run that was only just asked for has not ended. */
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
