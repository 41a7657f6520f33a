/**
 * Stands for `langsmith`, which LangChain imports for traces. A page sends none, and the package is a fifth of
 * what it loads first.
 */
export class RunTree {}
export class Client {}
export const isRunTree = (): boolean => false;
export const isTraceableFunction = (): boolean => false;
export const getCurrentRunTree = (): undefined => undefined;
export const getDefaultProjectName = (): string => "default";
export const convertToDottedOrderFormat = (): string => "";
