import { useSearchParams } from "wouter";

/** Labels contain no periods. */
const SEPARATOR = ".";

export const labelsOf = (text: string): string[] => (text === "" ? [] : text.split(SEPARATOR));
export const textOf = (labels: readonly string[]): string => labels.join(SEPARATOR);

export const pathOf = (labels: readonly string[]): string =>
  labels.length === 0 ? "/store" : `/store?${new URLSearchParams({ namespace: textOf(labels) }).toString()}`;

export const useNamespace = (): string[] => {
  const [params] = useSearchParams();
  return labelsOf(params.get("namespace") ?? "");
};
