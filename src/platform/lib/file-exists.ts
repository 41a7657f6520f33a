import { access } from "node:fs/promises";

/** Whether there is a file or a folder that this process can get at. A link counts by what it leads to. */
export const fileExists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
