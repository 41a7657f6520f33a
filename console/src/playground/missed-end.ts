import { useEffect, useRef } from "react";
import type { StreamGate } from "../server/stream-gate.ts";
import type { ThreadRecord } from "./thread-record.ts";

const LISTENED_EVERY_MS = 2_000;
/** How often nothing has come, after the server has said that the run is over. */
const PATIENCE = 3;

/**
 * A proxy may keep the connection of a browser open when the server behind it has gone: the end of a run is never told, nor that
 * nothing more comes. So when the server says that the run which is listened to is over, and the stream stays silent, what is stored
 * is read anew. Not on the server's word alone: on a slow line the end of the answer may still be coming.
 */
export const useMissedEnd = (
  record: ThreadRecord | null | undefined,
  isLoading: boolean,
  gate: StreamGate,
  readAnew: () => void,
): void => {
  /** How the thread stood as it began to be listened to: a run that was only just asked for has not ended. */
  const begun = useRef<{ gate: StreamGate; standing: string }>(undefined);
  const standing = `${record?.status ?? "idle"} ${record?.state_updated_at ?? ""}`;
  const isBusy = record?.status === "busy";
  useEffect(() => {
    if (!isLoading) {
      begun.current = undefined;
      return;
    }
    if (begun.current?.gate !== gate) begun.current = { gate, standing };
    if (isBusy || standing === begun.current.standing) return;
    let { chunks } = gate;
    let silence = 0;
    const timer = setInterval(() => {
      silence = gate.chunks === chunks ? silence + 1 : 0;
      chunks = gate.chunks;
      if (silence >= PATIENCE || !gate.isOpen) readAnew();
    }, LISTENED_EVERY_MS);
    return () => clearInterval(timer);
  }, [gate, isBusy, isLoading, readAnew, standing]);
};
