import { isObject } from "../../parts/is-object.ts";

export interface RunOptions {
  /** Merged over the context of the assistant. */
  context?: Readonly<Record<string, unknown>> | undefined;
  /** `config.configurable`, merged over the assistant's. */
  configurable?: Readonly<Record<string, unknown>> | undefined;
  /** In steps. */
  recursionLimit?: number | undefined;
  /** Node names, or `*` for every node. */
  stopBefore: readonly string[];
  stopAfter: readonly string[];
}

export const EVERY_NODE = "*";
export const NO_OPTIONS: RunOptions = { stopBefore: [], stopAfter: [] };

const isFilled = (value: Readonly<Record<string, unknown>> | undefined): boolean =>
  value !== undefined && Object.keys(value).length > 0;

const nodesAsked = (nodes: readonly string[]): "*" | readonly string[] =>
  nodes.includes(EVERY_NODE) ? EVERY_NODE : nodes;

/** The parameters of the command `run.start`; only options that are set. */
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

/** Parameters of the command, e.g. its checkpoint, win over the options. */
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

/** Undefined if no option is set. */
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
