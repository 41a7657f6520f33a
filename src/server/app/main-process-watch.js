/** A graph may block the main thread, so this thread ends the process when the main process is gone. */
import process from "node:process";
import { setInterval } from "node:timers";
import { workerData } from "node:worker_threads";

const LOOK_MS = 500;

setInterval(() => {
  if (process.ppid !== workerData.parent) process.kill(process.pid, "SIGKILL");
}, LOOK_MS);
