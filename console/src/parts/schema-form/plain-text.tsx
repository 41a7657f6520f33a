import type { ReactNode } from "react";

/**
 * In the place of `markdown-to-jsx` (vite.config.js), with which the library of forms would show words of a schema: the console
 * shows them as they are, and is smaller by what reads Markdown.
 */
export const Markdown = ({ children }: { children?: ReactNode }) => <>{children}</>;
