export interface Progress {
  /** Finished, with any outcome. */
  threads: number;
  threadsTotal: number;
  checkpoints: number;
  seconds: number;
}

interface ProgressOutput {
  write(text: string): void;
  terminal: boolean;
}

const REDRAW_MS = 100;
const LINE_EVERY_MS = 2_000;
const ERASE_LINE = "\r\u001b[2K";

const number = new Intl.NumberFormat("en-US");

const duration = (seconds: number): string => {
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return (parts[0] === 0 ? parts.slice(1) : parts)
    .map((part, index) => (index === 0 ? String(part) : String(part).padStart(2, "0")))
    .join(":");
};

/** E.g. `120/1,000 threads, 4,321 checkpoints, 2,100/s, 0:34 left`. */
export const progressText = ({ threads, threadsTotal, checkpoints, seconds }: Progress): string => {
  const rate = seconds > 0 ? checkpoints / seconds : 0;
  const left =
    threads > 0 && threads < threadsTotal ? (seconds / threads) * (threadsTotal - threads) : undefined;
  return [
    `${number.format(threads)}/${number.format(threadsTotal)} threads`,
    `${number.format(checkpoints)} checkpoints`,
    `${number.format(Math.round(rate))}/s`,
    ...(left === undefined ? [] : [`${duration(left)} left`]),
  ].join(", ");
};

/** On a terminal redraws one line, else prints a line every two seconds. The last one is always printed. */
export const createProgressLine = ({ write, terminal }: ProgressOutput) => {
  let shownAt = terminal ? Number.NEGATIVE_INFINITY : performance.now();
  return (progress: Progress, isLast = false): void => {
    if (!isLast && performance.now() - shownAt < (terminal ? REDRAW_MS : LINE_EVERY_MS)) return;
    shownAt = performance.now();
    write(`${terminal ? ERASE_LINE : ""}${progressText(progress)}${terminal && !isLast ? "" : "\n"}`);
  };
};
