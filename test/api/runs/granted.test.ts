import { expect, test } from "vitest";
import { createDecisions, HandlerError } from "../../../src/access/auth/decisions.ts";
import { userOf } from "../../../src/access/auth/authenticate.ts";
import { createAuthorize } from "../../../src/access/authorize.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { Encryption } from "../../../src/platform/encryption/encryption.ts";
import { createRunGrants } from "../../../src/api/runs/creation/requests.ts";
import { runBody } from "../../../src/api/runs/schemas.ts";

/** Requests for runs that the project's handler changes. */

interface Given {
  metadata: Record<string, unknown>;
  kwargs: {
    input: { messages: { content: string }[] };
    config: { configurable: { model: unknown }; recursion_limit?: unknown };
  };
}
const bodyOf = () =>
  runBody.parse({
    assistant_id: newId(),
    input: { messages: [{ content: "hi" }] },
    config: { configurable: { model: "small" } },
  });
const grant = async (body: ReturnType<typeof bodyOf>, handler: (value: Given) => void) => {
  const answer = ({ event, value }: { event: string; value: unknown }): void => {
    if (event === "threads:create_run") handler(value as Given);
  };
  const decisions = createDecisions({ handlerOf: () => answer });
  return await createRunGrants(createAuthorize({ decisions }), new Encryption(undefined))(
    userOf("alice"),
    body,
    newId(),
  );
};

test("a handler's change deep inside a request reaches the run, and the original request stays unchanged", async () => {
  const body = bodyOf();
  const before = structuredClone(body);
  const granted = await grant(body, ({ kwargs }) => {
    kwargs.config.configurable.model = "large";
    kwargs.input.messages.push({ content: "be brief" });
  });
  expect(granted.body).toMatchObject({
    input: { messages: [{ content: "hi" }, { content: "be brief" }] },
    config: { configurable: { model: "large" } },
  });
  expect(body).toEqual(before);
});

test("a handler's change deep inside a request must be valid for a client, too", async () => {
  for (const change of [
    ({ kwargs }: Given) => (kwargs.config.configurable.model = "a\0b"),
    ({ kwargs }: Given) => (kwargs.config.recursion_limit = "many"),
  ])
    await expect(grant(bodyOf(), change)).rejects.toBeInstanceOf(HandlerError);
});
