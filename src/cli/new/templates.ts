import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

export const TEMPLATES = ["agent", "approval", "research"] as const;
export type Template = (typeof TEMPLATES)[number];

export const TEMPLATE_HINTS: Readonly<Record<Template, string>> = {
  agent: "an agent with tools",
  approval: "a person approves before something is done",
  research: "a plan, searches in parallel, a report",
};

export const TEMPLATE_QUESTIONS: Readonly<Record<Template, string>> = {
  agent: "What is 6 * 7?",
  approval: "Thank ada@example.com for her order",
  research: "tea",
};

export const LANGUAGES = ["typescript", "javascript"] as const;
export type Language = (typeof LANGUAGES)[number];

export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = {
  typescript: "TypeScript",
  javascript: "JavaScript",
};

export const ENDINGS: Readonly<Record<Language, string>> = { typescript: "ts", javascript: "js" };

const FOLDER = fileURLToPath(new URL("../../../templates/", import.meta.url));

/** npm leaves `.gitignore` out of packages, and repositories ignore `.env…`. */
const NAMES: Readonly<Record<string, string>> = { gitignore: ".gitignore", "env.example": ".env.example" };

const textsOf = async (folder: string): Promise<Map<string, string>> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = files.map(async (file): Promise<[string, string]> => {
    const path = file.slice(folder.length + 1).replaceAll("\\", "/");
    return [path, await readFile(file, "utf8")];
  });
  return new Map(await Promise.all(texts));
};

export const templateFiles = async (template: Template, language: Language): Promise<Map<string, string>> => {
  const [common, ofLanguage, own] = await Promise.all([
    textsOf(join(FOLDER, "project")),
    textsOf(join(FOLDER, language)),
    textsOf(join(FOLDER, template, language)),
  ]);
  const readme = await readFile(join(FOLDER, template, "README.md"), "utf8");
  const all = [...common, ...ofLanguage, ...own, ["README.md", readme] as const];
  return new Map(
    all
      .filter(([path]) => language === "typescript" || basename(path) !== "tsconfig.json")
      .map(([path, text]) => [Object.hasOwn(NAMES, path) ? (NAMES[path] ?? path) : path, text]),
  );
};
