import { expect, test } from "vitest";
import { textOf } from "../../../src/protocols/agui/messages.ts";

test("the text of a message has the plain texts of its content, too", () => {
  const image = { type: "image_url", image_url: "https://example.com/cat.png" };
  expect(textOf(["Hello ", { type: "text", text: "you" }, image, null])).toBe("Hello you");
  expect([textOf("Hello"), textOf(null)]).toEqual(["Hello", ""]);
});
