/**
 * A thread in a child process of a server. A graph may block the main thread, so this thread ends the process when the main
 * process is gone, and reports whose code blocks the loop.
 */
import process from "node:process";
import { setInterval } from "node:timers";
import { workerData } from "node:worker_threads";

const LOOK_MS = 500;

/**
 * `pings`: how many the loop has answered, a shared counter; `silentMs`: how long none has been before the process is asked who keeps it;
 * `name`: the global function that says so.
 */
const { parent, pings, silentMs, name } = workerData;

/** Stops the loop for a moment, wherever it is, and calls `name` there: in the context of the code that it executes. */
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
/** Looks, and not milliseconds: a laptop that was suspended has not been silent. */
let looks = 0;

setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, "SIGKILL");
  if (pings === undefined) return;
  const answered = Atomics.load(pings, 0);
  looks = answered === seen ? looks + 1 : 0;
  seen = answered;
  // Before the first one it loads its graphs.
  if (answered > 0 && looks === Math.ceil(silentMs / LOOK_MS)) askWhoBlocks().catch(() => undefined);
}, LOOK_MS);
