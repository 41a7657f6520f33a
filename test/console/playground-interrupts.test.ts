import { describe, expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { playgroundOf } from "./playground-person.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "a question to a person in the playground",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    onConsole(
      {
        graphConfigFile: GRAPHS,
        context: { viewport: { width: 1400, height: 900 } },
      },
      (opened) => (shown = opened),
    );

    const { messages, say, begin } = playgroundOf(() => shown);

    test("is accepted, edited, answered or ignored in the shape of agent inboxes", async () => {
      const { page } = shown;
      const action = page.getByRole("group", { name: "transfer" });
      const answers: string[] = [];
      await begin("asking");
      for (const [place, answer] of [
        () => action.getByRole("button", { name: "Accept" }).click(),
        async () => {
          await action.getByLabel("to", { exact: true }).fill("Bob");
          await action.getByLabel("amount").fill("41");
          await action.getByRole("button", { name: "Send the edited arguments" }).click();
        },
        async () => {
          await action.getByLabel("Response").fill("Later.");
          await action.getByRole("button", { name: "Respond" }).click();
        },
        () => action.getByRole("button", { name: "Ignore" }).click(),
      ].entries()) {
        await say("inbox");
        await action.locator("strong").getByText("40").waitFor();
        // A message would count as the answer.
        expect(await page.getByLabel("Message", { exact: true }).count()).toBe(0);
        if (place === 0) expect(await shown.violations()).toEqual([]);
        await answer();
        const said = messages()
          .nth(place * 2 + 1)
          .getByText(/^Answered: /);
        await said.waitFor();
        answers.push(((await said.textContent()) ?? "").replace("Answered: ", ""));
      }
      expect(answers.map((answer) => JSON.parse(answer) as unknown)).toEqual([
        [{ type: "accept", args: { action: "transfer", args: { to: "Ada", amount: 40 } } }],
        [{ type: "edit", args: { action: "transfer", args: { to: "Bob", amount: 41 } } }],
        [{ type: "response", args: "Later." }],
        [{ type: "ignore", args: null }],
      ]);
    });

    test("can be several actions of the middleware, answered once all are decided", async () => {
      const { page } = shown;
      await begin("asking");
      await say("middleware");
      const [letter, fire] = ["send", "burn"].map((name) => page.getByRole("group", { name, exact: true }));
      await letter?.getByLabel("text").fill("Dear Bob");
      await letter?.getByRole("button", { name: "Send the edited arguments" }).click();
      expect(await fire?.getByRole("button", { name: /edit/ }).count()).toBe(0);
      await fire?.getByLabel("Reason (if you reject)").fill("No fire.");
      await fire?.getByRole("button", { name: "Reject" }).click();
      const edited = { name: "send", args: { text: "Dear Bob" } };
      const answer = messages()
        .last()
        .getByText(/^Answered: /);
      await answer.waitFor();
      expect(JSON.parse(((await answer.textContent()) ?? "").replace("Answered: ", ""))).toEqual({
        decisions: [
          { type: "edit", editedAction: edited, edited_action: edited },
          { type: "reject", message: "No fire." },
        ],
      });
    });

    test("can be several questions at once, and questions of any shape", async () => {
      const { page } = shown;
      await begin("asking");
      await say("two");
      for (const place of ["Paris", "Rome"]) {
        const question = page.getByRole("group").filter({ hasText: `What is in ${place}?` });
        await question.getByLabel("Answer").fill(`${place} itself`);
        await question.getByRole("button", { name: "Answer", exact: true }).click();
      }
      await messages().getByText('In Paris: "Paris itself"').waitFor();
      await messages().getByText('In Rome: "Rome itself"').waitFor();
      await say("free");
      await page.getByText("Which colour?").waitFor();
      await page.getByLabel("Answer as JSON").fill('{ "colour": "red" }');
      await page.getByRole("button", { name: "Answer", exact: true }).click();
      await messages().getByText('Answered: {"colour":"red"}').waitFor();
    });

    test("is answered only by a person's input or choice: no field is prefilled, and no empty one is sent", async () => {
      const { page } = shown;
      const json = page.getByLabel("Answer as JSON");
      const text = page.getByLabel("Answer", { exact: true });
      const send = page.getByRole("button", { name: "Answer", exact: true });
      await begin("asking");
      await say("twice");
      await page.getByText("Once?").waitFor();
      expect([await json.inputValue(), await send.isDisabled()]).toEqual(["", true]);
      await json.fill("true");
      expect(await send.isEnabled()).toBe(true);
      // The input was typed into a field that is no longer shown.
      await page.getByRole("button", { name: "Answer with a text" }).click();
      expect([await text.inputValue(), await send.isDisabled()]).toEqual(["", true]);
      await page.getByRole("button", { name: "Answer with JSON" }).click();
      expect([await json.inputValue(), await send.isDisabled()]).toEqual(["", true]);
      await json.fill("null");
      await send.click();
      await page.getByText("Twice?").waitFor();
      expect([await json.inputValue(), await send.isDisabled()]).toEqual(["", true]);
      await json.fill("2");
      await send.click();
      await messages().getByText("Answered: [null,2]").waitFor();
    });

    test("has a button for each of its options, which answers with that option", async () => {
      const { page } = shown;
      const options = page.getByRole("group", { name: "Options" });
      await begin("asking");
      for (const [place, [name, answer]] of [
        ["approve", '"approve"'],
        ["false", "false"],
        ["Ask Ada", "7"],
      ].entries()) {
        await say("options");
        await options.getByRole("button", { name, exact: true }).waitFor();
        expect(await options.getByRole("button").allTextContents()).toEqual(["approve", "false", "Ask Ada"]);
        if (place === 0) {
          // Enter and Space answer nothing unless a person has moved to a button.
          expect(await page.evaluate("document.activeElement?.closest('fieldset') === null")).toBe(true);
          expect(await shown.violations()).toEqual([]);
        }
        await options.getByRole("button", { name, exact: true }).click();
        await messages()
          .nth(place * 2 + 1)
          .getByText(`Answered: ${answer}`)
          .waitFor();
      }
      // An answer other than an option.
      await say("options");
      await page.getByLabel("Answer as JSON").fill('"neither"');
      await page.getByRole("button", { name: "Answer", exact: true }).click();
      await messages().getByText('Answered: "neither"').waitFor();
    });

    test("has buttons for the first of many options, and none for options of another shape", async () => {
      const { page } = shown;
      const options = page.getByRole("group", { name: "Options" });
      await begin("asking");
      await say("many options");
      await options.getByRole("button", { name: "Show all 1,000 options" }).waitFor();
      expect(((await options.textContent()) ?? "").length).toBeLessThan(5_000);
      await options.getByRole("button", { name: "Show all 1,000 options" }).click();
      await options.getByRole("button", { name: /^999 a/ }).click();
      await messages()
        .getByText(/^Answered: "999 a{1000}"$/)
        .waitFor();
      await say("no buttons");
      await page.getByLabel("Answer as JSON").waitFor();
      expect(await options.count()).toBe(0);
    });

    test("scrolls if it is long, with the conversation visible above it", async () => {
      const { page } = shown;
      await page.setViewportSize({ width: 1280, height: 800 });
      await begin("asking");
      await say("long");
      const question = page.getByRole("region", { name: "The graph waits for an answer" });
      await question.getByRole("button", { name: "Accept" }).waitFor();
      const heightOf = async (place: typeof question): Promise<number> =>
        (await place.boundingBox())?.height ?? 0;
      expect(await heightOf(question)).toBeLessThan(440);
      expect(await heightOf(page.getByRole("log", { name: "Messages" }))).toBeGreaterThan(200);
      expect(await page.evaluate("document.documentElement.scrollHeight <= innerHeight")).toBe(true);
      expect(await shown.violations()).toEqual([]);
      // The keyboard alone reaches its end.
      await question.getByRole("button", { name: "Ignore" }).focus();
      await page.keyboard.press("Enter");
      await messages()
        .getByText(/^Answered: .*ignore/)
        .waitFor();
    });

    test("is drawn piece by piece if it has megabytes and can't be edited", async () => {
      const { page } = shown;
      await begin("asking");
      await say("inbox of megabytes without edit");
      const action = page.getByRole("group", { name: "transfer" });
      await action.getByRole("button", { name: "Accept" }).waitFor();
      const drawn = async (): Promise<number> => ((await action.textContent()) ?? "").length;
      expect((await action.getByLabel("to", { exact: true }).inputValue()).length).toBeLessThan(3_000);
      expect(await drawn()).toBeLessThan(10_000);
      await action.getByRole("button", { name: "More of 588,891 characters" }).click();
      await eventually("there is more of it", async () => (await drawn()) > 50_000 || undefined);
    });

    test("becomes a field only when a person wants to edit it, if it has megabytes", async () => {
      const { page } = shown;
      await begin("asking");
      await say("inbox of megabytes");
      const action = page.getByRole("group", { name: "transfer" });
      const places = () => action.getByLabel("places", { exact: true });
      await action.getByRole("button", { name: "Edit all 588,891 characters of places" }).waitFor();
      expect(await places().count()).toBe(0);
      expect((await action.getByLabel("to", { exact: true }).inputValue()).length).toBeLessThan(3_000);
      expect(((await action.textContent()) ?? "").length).toBeLessThan(10_000);
      await action.getByRole("button", { name: "Edit all 300,000 characters of to" }).click();
      await eventually(
        "the whole text stands in its field",
        async () => (await action.getByLabel("to", { exact: true }).inputValue()).length === 300_000,
      );
      await action.getByLabel("to", { exact: true }).fill("Ada");
      await action.getByRole("button", { name: "Send the edited arguments" }).click();
      await messages().last().getByText("Answered:").waitFor();
      expect(await messages().last().textContent()).toContain('"to":"Ada"');
    });

    test("has thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
