import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLayoutEffect, useRef, useState } from "react";
import { useConnection } from "../../server/connection.tsx";

const AT_ONCE = 4;

/**
 * Deletes threads, and tells how many are done. A thread that cannot be deleted stops the rest.
 * @param onDeleted as it is when the threads are deleted: another thread may be open by then
 */
export const useDeleteThreads = (onDeleted: (threadIds: readonly string[]) => void) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const [done, setDone] = useState(0);
  const latest = useRef(onDeleted);
  useLayoutEffect(() => {
    latest.current = onDeleted;
  });
  const mutation = useMutation({
    mutationFn: async (threadIds: readonly string[]) => {
      setDone(0);
      const deleted: string[] = [];
      try {
        for (let first = 0; first < threadIds.length; first += AT_ONCE) {
          const some = threadIds.slice(first, first + AT_ONCE);
          await Promise.all(
            some.map(async (threadId) => {
              await client.threads.delete(threadId);
              deleted.push(threadId);
            }),
          );
          setDone(deleted.length);
        }
      } finally {
        await Promise.all([
          queries.resetQueries({ queryKey: ["threads", "pages"] }),
          queries.invalidateQueries({ queryKey: ["threads", "list"] }),
        ]);
        latest.current(deleted);
      }
    },
  });
  return { remove: mutation.mutate, isDeleting: mutation.isPending, done, error: mutation.error };
};
