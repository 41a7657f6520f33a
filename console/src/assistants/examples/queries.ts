import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { isObject } from "../../parts/is-object.ts";
import { statusOf } from "../../server/api-error.ts";
import { messageOf, useConnection } from "../../server/connection.tsx";

/** Stored in the store, under the key `id`. */
export interface Example {
  id: string;
  name: string;
  input: unknown;
  /** The answer that a person marked as good. */
  expected: string | undefined;
  created_at: string;
}

export const EXAMPLES_AT_MOST = 200;

/** Labels of a namespace have no periods. */
const namespaceOf = (graphId: string): string[] => [
  "console",
  "examples",
  graphId.replaceAll("%", "%25").replaceAll(".", "%2E"),
];

const REFUSALS: ReadonlyMap<number | undefined, string> = new Map([
  [403, "Examples are kept in the store, which you may not use. Ask an administrator for access."],
  [404, "Examples are kept in the store, which this server does not offer."],
]);

/** Without a status, so that a refusal of the store does not end the session. */
const inWords = (thrown: unknown): Error =>
  new Error(REFUSALS.get(statusOf(thrown)) ?? messageOf(thrown), { cause: thrown });

const explained = async <Answer>(request: Promise<Answer>): Promise<Answer> => {
  try {
    return await request;
  } catch (error) {
    throw inWords(error);
  }
};

const textIn = (value: unknown): string => (typeof value === "string" ? value : "");

const exampleIn = (item: unknown): Example[] => {
  if (!isObject(item) || typeof item["key"] !== "string" || !isObject(item["value"])) return [];
  const { name, input, expected, created_at } = item["value"];
  return [
    {
      ...{ id: item["key"], name: textIn(name), input },
      expected: typeof expected === "string" ? expected : undefined,
      created_at: textIn(created_at) || textIn(item["created_at"]),
    },
  ];
};

/** Newest first. */
export const useExamples = (graphId: string) => {
  const { request } = useConnection();
  return useQuery({
    queryKey: ["examples", graphId],
    retry: false,
    queryFn: async () => {
      const { items } = await explained(
        request<{ items: unknown[] }>("POST", "/store/items/search", {
          ...{ namespace_prefix: namespaceOf(graphId), limit: EXAMPLES_AT_MOST + 1, refresh_ttl: false },
        }),
      );
      const examples = items
        .flatMap(exampleIn)
        .sort((one, other) => other.created_at.localeCompare(one.created_at));
      return { examples: examples.slice(0, EXAMPLES_AT_MOST), hasMore: items.length > EXAMPLES_AT_MOST };
    },
  });
};

export const useSaveExample = (graphId: string, onSaved?: () => void) => {
  const { request } = useConnection();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, ...value }: Example) =>
      explained(
        request("PUT", "/store/items", {
          ...{ namespace: namespaceOf(graphId), key: id, value, index: false, ttl: null },
        }),
      ),
    onSuccess: async () => {
      onSaved?.();
      await queries.invalidateQueries({ queryKey: ["examples", graphId] });
    },
  });
};

export const useDeleteExample = (graphId: string) => {
  const { request } = useConnection();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      explained(request("DELETE", "/store/items", { namespace: namespaceOf(graphId), key: id })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["examples", graphId] }),
  });
};
