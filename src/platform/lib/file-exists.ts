import { access } from "node:fs/promises";

/** Whether this process can access a file or folder. Follows links. */
export const fileExists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
