import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A page of the documentation. */
export interface Page {
  /** Relative to the repository. */
  path: string;
  text: string;
}

const pageOf = (path: string): Page => ({ path, text: readFileSync(join(ROOT, path), "utf8") });

/** Every page for users; decisions are for contributors. */
export const userPages = (): Page[] => {
  const inDocs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md") && !path.startsWith("decisions"))
    .map((path) => join("docs", path));
  return ["README.md", "SECURITY.md", "CONTRIBUTING.md", ...inDocs.toSorted()].map(pageOf);
};

export const decisionPages = (): Page[] =>
  readdirSync(join(ROOT, "docs/decisions"))
    .toSorted()
    .map((name) => pageOf(join("docs/decisions", name)));

const FENCE = /^ *```(\w*)\n([^]*?)^ *```$/gm;

/** A page without its blocks of code. */
export const proseOf = (text: string): string => text.replaceAll(FENCE, "");

/** The code on a page: blocks of these languages, and spans of its prose. */
export const codeOf = (text: string, languages?: readonly string[]): string[] => [
  ...[...text.matchAll(FENCE)]
    .filter(([, language]) => languages === undefined || languages.includes(language ?? ""))
    .map(([, , code]) => code ?? ""),
  ...[...proseOf(text).matchAll(/`([^`\n]+)`/g)].map(([, code]) => code ?? ""),
];

/** GitHub's anchor for a heading. */
const anchorOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\-_ ]/gu, "")
    .replaceAll(" ", "-");

/** GitHub's anchors of a page. */
export const anchorsOf = (text: string): Set<string> => {
  const anchors = new Set<string>();
  const counts = new Map<string, number>();
  for (const [, heading = ""] of proseOf(text).matchAll(/^#+ (.+)$/gm)) {
    const anchor = anchorOf(heading);
    const count = counts.get(anchor) ?? 0;
    counts.set(anchor, count + 1);
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`);
  }
  return anchors;
};

export interface Link {
  /** The page with the link, relative to the repository. */
  from: string;
  /** As written in the page. */
  target: string;
  /** The target, relative to the repository. */
  path: string;
  anchor: string | undefined;
}

/** The links of a page to this repository; those to other hosts are left out. */
export const linksOf = ({ path: from, text }: Page): Link[] =>
  [...proseOf(text).matchAll(/(?:\]\(|(?:src|srcset|href)=")([^)"\s]+)[)"]/g)].flatMap(([, target = ""]) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [file = "", anchor] = target.split("#");
    const path = file === "" ? from : relative(ROOT, join(ROOT, dirname(from), file));
    return [{ from, target, path, anchor }];
  });

/** All source of a folder as one text, with the parts of concatenated strings joined. */
export const sourceText = (folder: "src" | "test"): string =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.[jt]s$/.test(path))
    .map((path) => readFileSync(join(ROOT, folder, path), "utf8"))
    .join("\n")
    .replaceAll(/["`]\s*\+\s*["`]/g, "");
