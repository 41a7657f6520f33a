import type { ReactNode } from "react";

/** Replaces `markdown-to-jsx` of the form library (vite.config.js), which saves the Markdown parser. */
export const Markdown = ({ children }: { children?: ReactNode }) => <>{children}</>;
