import { readFile } from "node:fs/promises";
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
import { expect, test } from "vitest";
import * as exported from "../../../src/server/embedding/auth.ts";

test("threadloom/auth exports the official Auth and HTTPException", async () => {
  expect(exported.Auth).toBe(Auth);
  expect(exported.HTTPException).toBe(HTTPException);
  const text = await readFile(new URL("../../../package.json", import.meta.url), "utf8");
  const { exports } = JSON.parse(text) as { exports: Record<string, { default: string }> };
  expect(exports["./auth"]?.default).toBe("./dist/server/embedding/auth.js");
});
