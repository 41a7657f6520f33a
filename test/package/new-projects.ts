import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import type { Language, Template } from "../../src/cli/new/templates.ts";
import { freshDatabase } from "../helpers/database.ts";
import { startIn, type InstalledProject } from "./installed-project.ts";

/** Tests of new projects from these templates in these languages, with the installed package. */
export const newProjects = (
  templates: readonly Template[],
  languages: readonly Language[],
  makeProject: (packageJson: object, files: Record<string, unknown>) => Promise<InstalledProject>,
): void => {
  describe(`new projects of ${templates.join(", ")} in ${languages.join(" and ")}`, () => {
    const kinds = templates.flatMap((template) =>
      languages.map((language) => ({ template, language, folder: `${template}-in-${language}` })),
    );
    let project: InstalledProject;

    beforeAll(async () => {
      project = await makeProject({}, {});
      const bin = "node_modules/threadloom/bin/threadloom.js";
      for (const { template, language, folder } of kinds) {
        const flags = ["--template", template, "--language", language, "--no-install"];
        const out = await project.node(bin, "new", folder, ...flags);
        expect(out).toContain(`  cd ${folder}\n  npm install\n  npm run dev\n`);
      }
    });

    test("stream their answers token by token", async () => {
      const graphs = kinds.map(async ({ template, folder }) => {
        const text = await readFile(project.path(`${folder}/langgraph.json`), "utf8");
        const named = (JSON.parse(text) as { graphs: Record<string, { path: string }> }).graphs[template];
        return [folder, `./${folder}/${named?.path}`];
      });
      await project.write({ "langgraph.json": { graphs: Object.fromEntries(await Promise.all(graphs)) } });
      const database = await freshDatabase();
      const server = await startIn(project, {
        DATABASE_URL: database.connectionString,
        SOURCE_SCHEMAS: "false",
      });
      try {
        for (const { folder } of kinds) {
          const answer = await fetch(`${server.url}/runs/stream`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({
              assistant_id: folder,
              input: { messages: [{ role: "user", content: "What is 6 * 7?" }] },
              stream_mode: ["messages-tuple"],
            }),
          });
          const events = (await answer.text()).match(/^event: \w+$/gm) ?? [];
          expect(events.filter((event) => event === "event: messages").length).toBeGreaterThan(5);
          expect(events).not.toContain("event: error");
        }
      } finally {
        await server.end("SIGINT");
        await database.drop();
      }
    });

    test.each(kinds)("pass their own tests: $template in $language", async ({ folder }) => {
      expect(await project.within(folder).npm("test")).toMatch(/^# fail 0$/m);
    });

    test.each(templates)("have no type error: %s", async (template) => {
      await project
        .within(`${template}-in-typescript`)
        .node(project.path("node_modules/typescript-native/bin/tsc"));
    });
  });
};
