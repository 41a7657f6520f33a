/** @returns what it has found or done, as the end of "The console …" */
export const buildConsole: (options?: { ifPossible?: boolean }) => Promise<string>;
