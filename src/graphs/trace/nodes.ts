import { errorFields } from "./errors.ts";
import { isBubblingUp, marks, scopeOf, TRACE_SCOPE, type SpanStatus, type TraceScope } from "./scope.ts";

/** The parts of LangGraph's loop and tasks (1.4.18) used here. */
interface Task {
  name: string | symbol;
  writes: readonly unknown[];
  proc: Proc;
}
interface Proc {
  invoke(input: unknown, config: TaskConfig): Promise<unknown>;
}
interface TaskConfig {
  configurable?: Record<string | symbol, unknown>;
}
interface Loop {
  tasks: Record<string, Task>;
  tick(options: unknown): Promise<boolean>;
  acceptPush?(...given: unknown[]): Promise<Task | undefined>;
  scheduleErrorHandler?(...given: unknown[]): Task | undefined;
}
interface LoopRunner {
  _runLoop(parameters: { loop: Loop; config?: unknown }): Promise<unknown>;
}

const TRACES = Symbol.for("threadloom.traces-nodes");

/** Only writes the input. */
const START = "__start__";

const statusOf = (error: unknown): SpanStatus => {
  if (!isBubblingUp(error)) return "error";
  return (error as Error).name === "ParentCommand" ? "success" : "interrupted";
};

/** A span for each try of the task: LangGraph calls `invoke` again to retry. */
class TracedProc implements Proc {
  /** Inside the span of the newest try. */
  inside: TraceScope | undefined;

  constructor(
    readonly proc: Proc,
    private readonly name: string,
    private readonly scope: TraceScope,
  ) {}

  async invoke(input: unknown, config: TaskConfig): Promise<unknown> {
    const span = this.scope.begin("node", this.name);
    this.inside = span.scope;
    try {
      const configurable = { ...config.configurable, [TRACE_SCOPE]: span.scope };
      const result = await span.run(() => this.proc.invoke(input, { ...config, configurable }));
      span.end("success");
      return result;
    } catch (error) {
      const status = statusOf(error);
      span.end(status, status === "error" ? errorFields(error) : undefined);
      throw error;
    }
  }
}

const traceTask = (task: Task | undefined, scope: TraceScope): void => {
  if (task === undefined || task.name === START || task.writes.length > 0) return;
  if (task.proc instanceof TracedProc) return;
  task.proc = new TracedProc(task.proc, String(task.name), scope);
};

const traceLoop = (loop: Loop, scope: TraceScope): void => {
  const tick = loop.tick.bind(loop);
  loop.tick = async (options) => {
    const goesOn = await tick(options);
    if (goesOn) for (const id in loop.tasks) traceTask(loop.tasks[id], scope);
    return goesOn;
  };
  // Tasks of the functional API.
  const acceptPush = loop.acceptPush?.bind(loop);
  if (acceptPush !== undefined)
    loop.acceptPush = async (...given) => {
      const task = await acceptPush(...given);
      const { proc } = given[0] as Task;
      traceTask(task, (proc instanceof TracedProc ? proc.inside : undefined) ?? scope);
      return task;
    };
  const scheduleErrorHandler = loop.scheduleErrorHandler?.bind(loop);
  if (scheduleErrorHandler !== undefined)
    loop.scheduleErrorHandler = (...given) => {
      const task = scheduleErrorHandler(...given);
      traceTask(task, scope);
      return task;
    };
};

/**
 * Patches LangGraph's common class, because nothing else reaches subgraphs. Callbacks would: they cost a run of two
 * nodes a third of its CPU (docs/decisions/081-traces.md). Does nothing if `_runLoop` is missing.
 * @param module `@langchain/langgraph/pregel`
 */
export const traceNodes = (module: unknown): void => {
  const { Pregel } = module as { Pregel?: { prototype: LoopRunner } };
  const owner = Pregel?.prototype;
  if (owner === undefined || typeof owner._runLoop !== "function" || !marks(owner, TRACES)) return;
  const runLoop = owner._runLoop;
  const tracing: LoopRunner["_runLoop"] = function (this: unknown, parameters) {
    const scope = scopeOf(parameters.config);
    if (scope?.tracesNodes === true) traceLoop(parameters.loop, scope);
    return runLoop.call(this, parameters);
  };
  // With the marks of other patches.
  owner._runLoop = Object.assign(tracing, runLoop);
};
