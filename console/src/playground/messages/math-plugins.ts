import rehypeKatex from "rehype-katex";
import type { Options } from "react-markdown";
import remarkMath from "remark-math";

const MATHML = { output: "mathml", maxExpand: 200, maxSize: 20, strict: false } as const;

/** MathML needs neither fonts nor styles. */
export const REMARK_MATH: Options["remarkPlugins"] = [remarkMath];
export const REHYPE_MATH: Options["rehypePlugins"] = [[rehypeKatex, MATHML]];
