/**
 * A graph may block the main thread, so this thread ends the process when the main process is gone. It also reports the
 * run that blocks the event loop.
 */
import process from "node:process";
import { setInterval } from "node:timers";
import { workerData } from "node:worker_threads";

const LOOK_MS = 500;

/**
 * `pings`: shared counter of pings that the event loop has answered; `name`: the global function that reports the run.
 * `silentMs`: time without an answer before the thread calls `name`.
 */
const { parent, pings, silentMs, name } = workerData;

/** Pauses the main thread and calls `name` there, in the context of the code that blocks it. */
const askWhoBlocks = async () => {
  const { Session } = await import("node:inspector");
  const session = new Session();
  session.connectToMainThread();
  session.once("Debugger.paused", ({ params: { callFrames } }) => {
    const { callFrameId } = callFrames[0];
    const expression = `globalThis[Symbol.for(${JSON.stringify(name)})]()`;
    session.post("Debugger.evaluateOnCallFrame", { callFrameId, expression }, () => {
      session.post("Debugger.resume");
      session.disconnect();
    });
  });
  session.post("Debugger.enable");
  session.post("Debugger.pause");
};

let seen = 0;
/** Counts checks instead of milliseconds, because a suspended laptop does not count as silent. */
let looks = 0;

setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, "SIGKILL");
  if (pings === undefined) return;
  const answered = Atomics.load(pings, 0);
  looks = answered === seen ? looks + 1 : 0;
  seen = answered;
  // Before its first answer the process loads its graphs.
  if (answered > 0 && looks === Math.ceil(silentMs / LOOK_MS)) askWhoBlocks().catch(() => undefined);
}, LOOK_MS);
