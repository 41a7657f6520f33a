/**
 * The program of a thread in a graph process. The end of the main process is heard by the loop of a graph process, unless
 * a graph blocks that: so this thread looks whether the process has got another parent, and ends it.
 */
import process from "node:process";
import { setInterval } from "node:timers";
import { workerData } from "node:worker_threads";

const LOOK_MS = 500;

setInterval(() => {
  if (process.ppid !== workerData) process.kill(process.pid, "SIGKILL");
}, LOOK_MS);
