import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { uiConfigOf } from "../../../src/graphs/project/ui.ts";
import { bundleUi, type UiBundle } from "../../../src/protocols/ui/bundle.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";

const aFolder = async (): Promise<string> => {
  const { path, remove } = await temporaryFolder();
  onTestFinished(remove);
  return path;
};

const bundled = async (files: Record<string, string>, shared: string[] = []): Promise<UiBundle> => {
  const folder = await aFolder();
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return await bundleUi({ name: "agent", file: join(folder, "ui.tsx") }, { shared, folder });
};
const textOf = ({ contents }: { contents: Buffer }): string => contents.toString();

describe("a bundle of components", () => {
  it("uses the page's own React, SDK, and modules named by ui_config.shared", async () => {
    const source = `
      import { useState } from "react";
      import * as chart from "a-chart/lines";
      import { useStreamContext } from "@langchain/langgraph-sdk/react-ui";
      export default { card: () => <b>{[useState, chart, useStreamContext].length}</b> };`;
    const { script } = await bundled({ "ui.tsx": source }, ["a-chart"]);
    const asked = [...textOf(script).matchAll(/Symbol\.for\("LGUI_REQUIRE"\)\]\("([^"]+)"\)/g)].map(
      ([, name]) => name,
    );
    expect(asked.sort()).toEqual([
      "@langchain/langgraph-sdk/react-ui",
      "a-chart/lines",
      "react",
      "react/jsx-runtime",
    ]);
    await expect(bundled({ "ui.tsx": source })).rejects.toThrow(
      /agent.*ui\.tsx:3:\d+: Could not resolve "a-chart\/lines"/s,
    );
  });

  it("supports CSS modules and paths of the project's tsconfig, which may leave JSX untransformed", async () => {
    const { script, styles } = await bundled({
      "tsconfig.json": JSON.stringify({
        compilerOptions: { jsx: "preserve", paths: { "@/*": ["./src/*"] } },
      }),
      "ui.tsx": `import { title } from "@/title"; import styles from "./card.module.css";
        export default { card: () => <b className={styles.card}>{title}</b> };`,
      "src/title.ts": `export const title: string = "a title";`,
      "card.module.css": ".card { color: red; }",
    });
    expect(textOf(script)).toContain("a title");
    const [, className] = /^\.(\w+)\{color:red\}$/m.exec(styles.map(textOf).join()) ?? [];
    expect(textOf(script)).toContain(`{card:"${className}"}`);
  });

  it("has a unique name in the page, and files named after their contents", async () => {
    const folder = await aFolder();
    const file = join(folder, "ui.tsx");
    await writeFile(file, "export default { card: () => null };");
    const [one, other] = await Promise.all(
      ["a-b", "a_b"].map((name) => bundleUi({ name, file }, { shared: [], folder })),
    );
    expect(one?.globalName).not.toBe(other?.globalName);
    const again = await bundleUi({ name: "a-b", file }, { shared: [], folder });
    expect(again.script.name).toBe(one?.script.name);
    await writeFile(file, "export default { card: () => 1 };");
    expect((await bundleUi({ name: "a-b", file }, { shared: [], folder })).script.name).not.toBe(
      one?.script.name,
    );
  });

  it("builds styles of Tailwind with the project's own package, and reports a missing one", async () => {
    const files = {
      "ui.tsx": `import "./ui.css"; import "./other.css"; export default { card: () => <b className="p-1" /> };`,
      "ui.css": `@import "tailwindcss" source(none);\n@source "./ui.tsx";`,
      "other.css": ".other { color: red; }",
      // Stands for Tailwind's package, without which the import above is not found.
      "node_modules/tailwindcss/index.css": "@tailwind utilities;",
      "node_modules/tailwindcss/package.json": JSON.stringify({ style: "index.css" }),
    };
    expect((await bundled(files)).warnings.join()).toContain("install tailwindcss and @tailwindcss/postcss");
    const { styles, warnings } = await bundled({
      ...files,
      "node_modules/@tailwindcss/postcss/package.json": JSON.stringify({ main: "index.cjs" }),
      "node_modules/@tailwindcss/postcss/index.cjs": `module.exports = ({ base }) => ".in-" + base.slice(base.lastIndexOf("/") + 1);`,
      "node_modules/postcss/package.json": JSON.stringify({ main: "index.cjs" }),
      "node_modules/postcss/index.cjs": `module.exports = ([made]) => ({ process: async () => ({ css: made + "{padding:4px}" }) });`,
    });
    const css = styles.map(textOf).join();
    expect(css).toMatch(/^\.in-threadloom-test-[\w-]+\{padding:4px\}\.other\{color:red\}$/m);
    expect(warnings).toEqual([]);
  });
});

describe("http.disable_ui", () => {
  it("disables components", () => {
    const ui = { agent: "./ui.tsx" };
    expect(uiConfigOf({ ui, ui_config: { shared: ["a"] } }, "/project")).toEqual({
      entries: [{ name: "agent", file: "/project/ui.tsx" }],
      shared: ["a"],
      folder: "/project",
    });
    expect(uiConfigOf({ ui, http: { disable_ui: true } }, "/project").entries).toEqual([]);
    expect(uiConfigOf({}, "/project").entries).toEqual([]);
  });
});
