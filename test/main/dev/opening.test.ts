import { chmod, readFile, writeFile } from "node:fs/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { isAttended } from "../../../src/cli/dev/launch.ts";
import { buildConsole } from "../../../console/build.js";
import { PATIENTLY } from "../../helpers/conditions.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";
import { developed, GRAPHS, SECONDS_AT_MOST } from "./dev-project.ts";

vi.setConfig({ testTimeout: SECONDS_AT_MOST * 1_000 });

test.skipIf(process.platform !== "linux")(
  "dev opens the console in the browser once, although the server restarts",
  async () => {
    await buildConsole();
    const folder = await temporaryFolder();
    onTestFinished(() => folder.remove());
    const opened = `${folder.path}/opened`;
    const browser = `${folder.path}/browser`;
    await writeFile(browser, `#!/bin/sh\necho "$1" >> '${opened}'\n`);
    await chmod(browser, 0o755);
    const { edit, untilLogged, server } = await developed({}, ["--open"], {
      BROWSER: browser,
      DISPLAY: "",
      XDG_CURRENT_DESKTOP: "",
      PATH: process.env["PATH"] ?? "",
    });
    const address = await server.address();
    await vi.waitFor(
      async () => expect(await readFile(opened, "utf8")).toBe(`${address}/console\n`),
      PATIENTLY,
    );
    await edit("langgraph.json", { graphs: GRAPHS, http: { mount_prefix: "/agents" } });
    await untilLogged("watching the graphs", 2);
    expect((await readFile(opened, "utf8")).split("\n")).toHaveLength(2);
  },
);

test("a browser opens only at a terminal, and never in CI, over SSH, or when disabled", () => {
  expect(isAttended({}, true)).toBe(true);
  expect(isAttended({}, false)).toBe(false);
  expect(isAttended({ CI: "true" }, true)).toBe(false);
  expect(isAttended({ SSH_CONNECTION: "192.0.2.1 1 192.0.2.2 22" }, true)).toBe(false);
  expect(isAttended({ BROWSER: "none" }, true)).toBe(false);
});
