import { readdir, readFile } from "node:fs/promises";
import { cpus } from "node:os";

/** Milliseconds of CPU of a server and its database. */
export interface CpuSample {
  server: number;
  database: number;
}

/** `sysconf(_SC_CLK_TCK)` is 100 on every Linux that supports Node. */
const MS_PER_TICK = 10;

interface ProcessTimes {
  parent: number;
  own: number;
  ofChildren: number;
}

/** Undefined if the process does not exist, or without /proc. */
const readTimes = async (pid: number | string): Promise<ProcessTimes | undefined> => {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  // The name, in parentheses, may contain spaces, so fields are counted after it. See proc_pid_stat(5).
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = (from: number) => (Number(fields[from]) + Number(fields[from + 1])) * MS_PER_TICK;
  return { parent: Number(fields[1]), own: ticks(11), ofChildren: ticks(13) };
};

/** CPU milliseconds of one process with all its threads; NaN if the system does not report it. */
export const processCpuMs = async (pid: number): Promise<number> => (await readTimes(pid))?.own ?? NaN;

/** CPU milliseconds of all processes of a cluster, including ended ones; NaN if the system does not report it. */
export const clusterCpuMs = async (postmasterPid: number): Promise<number> => {
  const postmaster = await readTimes(postmasterPid);
  if (postmaster === undefined) return NaN;
  let total = postmaster.own + postmaster.ofChildren;
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const times = await readTimes(name);
    if (times?.parent === postmasterPid) total += times.own;
  }
  return total;
};

/** CPU milliseconds of this process: of the client. */
export const ownCpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** CPU milliseconds in which the cores were busy with any process. */
export const machineBusyMs = (): number =>
  cpus().reduce((total, { times: { user, nice, sys, irq } }) => total + user + nice + sys + irq, 0);

/** Megabytes (2^20) that a process holds now, and its maximum so far. */
export const processMemory = async (pid: number): Promise<{ now: number; peak: number }> => {
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const mebibytes = (field: string) =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(text)?.[1] ?? NaN) / 1024;
  return { now: mebibytes("VmRSS"), peak: mebibytes("VmHWM") };
};
