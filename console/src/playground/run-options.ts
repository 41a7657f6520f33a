import { isObject } from "../parts/is-object.ts";

/** What the next runs are given beside their input. */
export interface RunOptions {
  /** Over the assistant's own, key by key; undefined: nothing of its own. */
  context?: Readonly<Record<string, unknown>> | undefined;
  /** `config.configurable`, over the assistant's own. */
  configurable?: Readonly<Record<string, unknown>> | undefined;
  /** Steps after which a run fails. */
  recursionLimit?: number | undefined;
  /** Nodes, or `*` for every one. */
  stopBefore: readonly string[];
  stopAfter: readonly string[];
}

export const EVERY_NODE = "*";
export const NO_OPTIONS: RunOptions = { stopBefore: [], stopAfter: [] };

const isFilled = (value: Readonly<Record<string, unknown>> | undefined): boolean =>
  value !== undefined && Object.keys(value).length > 0;

const nodesAsked = (nodes: readonly string[]): "*" | readonly string[] =>
  nodes.includes(EVERY_NODE) ? EVERY_NODE : nodes;

/** As the command that starts a run takes them; only what was set. */
export const paramsOf = (options: RunOptions): Record<string, unknown> => {
  const config = {
    ...(isFilled(options.configurable) && { configurable: options.configurable }),
    ...(options.recursionLimit !== undefined && { recursion_limit: options.recursionLimit }),
  };
  return {
    ...(isFilled(options.context) && { context: options.context }),
    ...(isFilled(config) && { config }),
    ...(options.stopBefore.length > 0 && { interrupt_before: nodesAsked(options.stopBefore) }),
    ...(options.stopAfter.length > 0 && { interrupt_after: nodesAsked(options.stopAfter) }),
  };
};

/** Params of a command with these options: what the command says itself, as its checkpoint, is kept. */
export const withOptions = (
  params: Record<string, unknown>,
  options: RunOptions,
): Record<string, unknown> => {
  const { config, ...others } = paramsOf(options) as { config?: Record<string, unknown> };
  if (config === undefined) return { ...others, ...params };
  const own = isObject(params["config"]) ? params["config"] : {};
  const configurable = {
    ...(config["configurable"] as object | undefined),
    ...(own["configurable"] as object | undefined),
  };
  return { ...others, ...params, config: { ...config, ...own, configurable } };
};

/** In a few words, for who has closed the form; undefined if nothing is set. */
export const summaryOf = ({ context, configurable, recursionLimit, stopBefore, stopAfter }: RunOptions) => {
  const named = (nodes: readonly string[]): string =>
    nodes.includes(EVERY_NODE) ? "every node" : nodes.join(", ");
  const parts = [
    ...(stopBefore.length > 0 ? [`stop before ${named(stopBefore)}`] : []),
    ...(stopAfter.length > 0 ? [`stop after ${named(stopAfter)}`] : []),
    ...(isFilled(context) ? ["their own context"] : []),
    ...(isFilled(configurable) || recursionLimit !== undefined ? ["their own configuration"] : []),
  ];
  return parts.length === 0 ? undefined : parts.join("; ");
};
