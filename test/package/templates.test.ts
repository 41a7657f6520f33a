import { afterAll, beforeAll } from "vitest";
import { LANGUAGES, TEMPLATES } from "../../src/cli/new/templates.ts";
import { aFolder, packPackage, unpackInto, type InstalledProject } from "./installed-project.ts";
import { newProjects } from "./new-projects.ts";

/** `npm run test:slow` tests one of the templates, in one language. */

let packed: Awaited<ReturnType<typeof packPackage>>;
let project: InstalledProject | undefined;

beforeAll(async () => {
  packed = await packPackage();
});
afterAll(async () => {
  await project?.remove();
  await packed?.remove();
});

newProjects(TEMPLATES, LANGUAGES, async (packageJson, files) => {
  project = await aFolder(packageJson);
  await unpackInto(project, packed.file);
  await project.write(files);
  return project;
});
