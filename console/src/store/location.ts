import { useSearchParams } from "wouter";

/** Labels hold no periods. */
const SEPARATOR = ".";

export const labelsOf = (text: string): string[] => (text === "" ? [] : text.split(SEPARATOR));
export const textOf = (labels: readonly string[]): string => labels.join(SEPARATOR);

/** The address of the page at a namespace. */
export const pathOf = (labels: readonly string[]): string =>
  labels.length === 0 ? "/store" : `/store?${new URLSearchParams({ namespace: textOf(labels) }).toString()}`;

/** The namespace that the address names: `/store?namespace=users.ada`. */
export const useNamespace = (): string[] => {
  const [params] = useSearchParams();
  return labelsOf(params.get("namespace") ?? "");
};
