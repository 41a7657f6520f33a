/**
 * `npm run bench:console`: measures the console in headless Chromium beside its server. With a thread of 5,000 messages and 60 tokens a
 * second it measures how even the frames are, how soon a page shows something, and how much it loads.
 */
import { readdirSync, statSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { buildConsole } from "../../console/build.js";
import { spawnProcess } from "../bench/server-process.ts";
import { EXECUTABLE, LAUNCH_ARGUMENTS } from "../clients/browser/chromium.ts";

const MESSAGES = 5_000;
const TOKENS = 600;
const TOKENS_PER_SECOND = 60;
const LOADS = 5;
const THREADS = 10_000;
const MADE_AT_ONCE = 20;
/** Turns of the wheel. */
const SCROLLED_AT_MOST = 2_000;
const FRAME_MS = 1_000 / 60;
/** Longer frames are visible as a hitch; browsers report the same as a long task. */
const LONG_MS = 50;

const GRAPHS = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));
const BUILT = fileURLToPath(new URL("../../dist/page/", import.meta.url));

const quantile = (values: readonly number[], part: number): number =>
  [...values].sort((one, other) => one - other)[
    Math.min(values.length - 1, Math.floor(values.length * part))
  ] ?? Number.NaN;

const write = (label: string, text: string): boolean => process.stdout.write(`${label.padEnd(58)} ${text}\n`);
const milliseconds = (value: number): string => `${Math.round(value)} ms`;

const paintOf = async (page: Page): Promise<number> => {
  await page.getByLabel("Message", { exact: true }).waitFor();
  return page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
  );
};

/** Bytes of the page, its files and its answers, compressed. Runs in the page. */
const LOADED_BYTES = `["navigation", "resource"]
  .flatMap((type) => performance.getEntriesByType(type))
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`;

/** Cold: the first visit of a browser; warm: the same page again. */
const measurePaint = async (browser: Browser, address: string): Promise<void> => {
  const cold: number[] = [];
  const warm: number[] = [];
  const ready: number[] = [];
  const bytes: number[] = [];
  for (let load = 0; load < LOADS; load += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(address);
    cold.push(await paintOf(page));
    ready.push(await page.evaluate(() => performance.now()));
    bytes.push(await page.evaluate<number>(LOADED_BYTES));
    await page.reload();
    warm.push(await paintOf(page));
    await context.close();
  }
  write("first contentful paint, cold (median of 5; wanted < 0.5 s)", milliseconds(quantile(cold, 0.5)));
  write("first contentful paint, warm (median of 5)", milliseconds(quantile(warm, 0.5)));
  write("the message box is there, cold (median of 5)", milliseconds(quantile(ready, 0.5)));
  write("loaded by then, compressed (wanted <= 350 KB)", `${(quantile(bytes, 0.5) / 1_000).toFixed(0)} KB`);
};

/** Collects the time between frames in `frames_`. Runs in the page. */
const WATCH_FRAMES = `{
    const frames = { intervals: [], longTasks: [] };
    window.frames_ = frames;
    new PerformanceObserver((list) => frames.longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
    let last = performance.now();
    const look = (now) => { frames.intervals.push(now - last); last = now; requestAnimationFrame(look); };
    requestAnimationFrame(look);
  }`;

interface Frames {
  intervals: number[];
  longTasks: number[];
}

const measureStream = async (browser: Browser, url: string, threadId: string): Promise<void> => {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  const begun = performance.now();
  await page.goto(`${url}/console/#/threads/${threadId}`);
  await page.getByText(`Message ${MESSAGES}.`).waitFor();
  write(
    `a thread of ${MESSAGES.toLocaleString("en")} messages, from the address to its end`,
    milliseconds(performance.now() - begun),
  );
  await page.getByLabel("Message", { exact: true }).fill("Type.");
  await page.keyboard.press("Enter");
  await page.getByText(/token5 /).waitFor();
  await page.evaluate(WATCH_FRAMES);
  const debug = await page.context().newCDPSession(page);
  await debug.send("Performance.enable");
  const busySeconds = async (): Promise<number> =>
    (await debug.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration")?.value ??
    Number.NaN;
  const busyBefore = await busySeconds();
  const watchedFrom = performance.now();
  await page.waitForTimeout(((TOKENS - 60) / TOKENS_PER_SECOND) * 1_000 - 500);
  const busy = (1_000 * ((await busySeconds()) - busyBefore)) / (performance.now() - watchedFrom);
  const streaming = (await page.evaluate("structuredClone(window.frames_)")) as Frames;
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await page.waitForTimeout(1_000);
  const all = (await page.evaluate("structuredClone(window.frames_)")) as Frames;
  const isAtEnd = await page
    .getByRole("log")
    .evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight < 60);
  const intervals = streaming.intervals.slice(1);
  const dropped = intervals.reduce(
    (sum, interval) => sum + Math.max(0, Math.round(interval / FRAME_MS) - 1),
    0,
  );
  const long = intervals.filter((interval) => interval > LONG_MS);
  const seconds = intervals.reduce((sum, interval) => sum + interval, 0) / 1_000;
  write(
    `${TOKENS_PER_SECOND} tokens/s for ${seconds.toFixed(1)} s: frames a second`,
    (intervals.length / seconds).toFixed(1),
  );
  write(
    "  frame, median / p95 / p99 / longest",
    [0.5, 0.95, 0.99, 1].map((part) => milliseconds(quantile(intervals, part))).join(" / "),
  );
  write("  the page's main thread is busy", `${(100 * busy).toFixed(0)} % of the time`);
  write(
    "  dropped frames",
    `${dropped} of ${intervals.length + dropped} (${((100 * dropped) / (intervals.length + dropped)).toFixed(1)} %)`,
  );
  write(`  frames over ${LONG_MS} ms; long tasks`, `${long.length}; ${streaming.longTasks.length}`);
  const atEnd = all.longTasks.slice(streaming.longTasks.length);
  write(
    "  as the run ends: long tasks, the longest",
    `${atEnd.length}, ${milliseconds(Math.max(0, ...atEnd))}`,
  );
  write("  the end stays in view", String(isAtEnd));
  write("  messages in the document", String(await page.getByRole("article").count()));
};

/** The wheel turns until the list has shown all threads. */
const measureThreadList = async (browser: Browser, url: string): Promise<void> => {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(`${url}/console/`);
  const list = page.getByRole("complementary", { name: "Threads" });
  await list.getByRole("link").first().waitFor();
  await list.hover();
  await page.evaluate(WATCH_FRAMES);
  let shown = "";
  for (let turns = 0; turns < SCROLLED_AT_MOST && !shown.includes(`Thread ${THREADS - 1} `); turns += 1) {
    await page.mouse.wheel(0, 600);
    await page.waitForTimeout(FRAME_MS);
    if (turns % 50 === 0) shown = (await list.textContent()) ?? "";
  }
  const { intervals, longTasks } = (await page.evaluate("structuredClone(window.frames_)")) as Frames;
  const seconds = intervals.reduce((sum, interval) => sum + interval, 0) / 1_000;
  write(
    `list of ${THREADS.toLocaleString("en")} threads, scrolled for ${seconds.toFixed(0)} s: frames a second`,
    (intervals.length / seconds).toFixed(1),
  );
  write(
    "  frame, median / p95 / p99 / longest; long tasks",
    `${[0.5, 0.95, 0.99, 1].map((part) => milliseconds(quantile(intervals, part))).join(" / ")}; ${longTasks.length}`,
  );
  write("  the oldest thread was reached", String(shown.includes(`Thread ${THREADS - 1} `)));
};

const measureBundle = (): void => {
  const assets = join(BUILT, "assets");
  const sizes = readdirSync(assets)
    .filter((name) => name.endsWith(".br"))
    .map((name) => ({ name, bytes: statSync(join(assets, name)).size }));
  const kilobytes = (of: typeof sizes): string =>
    `${(of.reduce((sum, { bytes }) => sum + bytes, 0) / 1_000).toFixed(0)} KB`;
  write("bundle, compressed, all pages, most on demand", kilobytes(sizes));
  for (const one of sizes.filter(({ bytes, name }) => bytes > 5_000 && !name.startsWith("index-")))
    write(`  ${one.name.replace(/-[\w-]{8}\.(js|css)\.br$/, ".$1")}`, kilobytes([one]));
};

/** A server as people start it, in a process of its own. */
const startServer = async () => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-console-"));
  // As root, the database runs as another user, who needs access to the folder.
  if (process.getuid?.() === 0) await chmod(folder, 0o755);
  const server = spawnProcess(
    [
      process.execPath,
      "bin/threadloom.js",
      "start",
      "--config",
      GRAPHS,
      "--port",
      "0",
      "--data",
      join(folder, "data"),
    ],
    { environment: { LOG_FORMAT: "json" } },
  );
  const close = async (): Promise<void> => {
    await server.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const [, url = ""] = await server.said(/"msg":"listening on ([^"]+)"/);
    return { url, close };
  } catch (error) {
    await close();
    throw error;
  }
};

const post = async (address: string, body: unknown): Promise<unknown> => {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${address} answered ${answer.status}: ${await answer.text()}`);
  return await answer.json();
};

const makeThreads = async (url: string): Promise<void> => {
  const open = Array.from({ length: THREADS }, (_, index) => THREADS - 1 - index);
  const makeNext = async (): Promise<void> => {
    for (let index = open.shift(); index !== undefined; index = open.shift())
      await post(`${url}/threads`, { metadata: { graph_id: "typing", title: `Thread ${index} of many` } });
  };
  await Promise.all(Array.from({ length: MADE_AT_ONCE }, makeNext));
};

const makeLongThread = async (url: string): Promise<string> => {
  const { thread_id } = (await post(`${url}/threads`, { metadata: { graph_id: "typing" } })) as {
    thread_id: string;
  };
  const messages = Array.from({ length: MESSAGES }, (_, index) => ({
    type: index % 2 === 0 ? "human" : "ai",
    id: `message-${index}`,
    content: `Message ${index + 1}.\n\nIt has **some** words, \`code\`, and ${"more ".repeat(index % 40)}.`,
  }));
  await post(`${url}/threads/${thread_id}/state`, {
    values: { messages, tokens: TOKENS, perSecond: TOKENS_PER_SECOND },
    as_node: "model",
  });
  return thread_id;
};

await buildConsole();
write("cores; load of the machine before", `${cpus().length}; ${loadavg()[0]?.toFixed(1)}`);
measureBundle();
const server = await startServer();
try {
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: LAUNCH_ARGUMENTS });
  try {
    await measurePaint(browser, `${server.url}/console/`);
    await measureStream(browser, server.url, await makeLongThread(server.url));
    await makeThreads(server.url);
    await measureThreadList(browser, server.url);
  } finally {
    await browser.close();
  }
} finally {
  await server.close();
}
