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
      await letter?.getByText("1 of 2").waitFor();
      // One card at a time.
      expect(await fire?.count()).toBe(0);
      await letter?.getByLabel("text", { exact: true }).fill("Dear Bob");
      await letter?.getByRole("button", { name: "Send the edited arguments" }).click();
      await fire?.getByText("2 of 2").waitFor();
      expect(await fire?.getByRole("textbox").count()).toBe(1);
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
      const question = page.getByRole("group", { name: /What is in/ });
      for (const position of ["1 of 2", "2 of 2"]) {
        await question.getByText(position).waitFor();
        const place = (await question.getByRole("heading").textContent())?.includes("Paris")
          ? "Paris"
          : "Rome";
        await question.getByLabel("Answer").fill(`${place} itself`);
        await question.getByRole("button", { name: "Answer", exact: true }).click();
      }
      await messages().getByText('In Paris: "Paris itself"').waitFor();
      await messages().getByText('In Rome: "Rome itself"').waitFor();
      await say("free");
      await page.getByText("Which colour?").waitFor();
      await page.getByRole("button", { name: "Answer with JSON" }).click();
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
      expect([await text.inputValue(), await send.isDisabled()]).toEqual(["", true]);
      await text.fill("yes");
      expect(await send.isEnabled()).toBe(true);
      // The input was typed into a field that is no longer shown.
      await page.getByRole("button", { name: "Answer with JSON" }).click();
      expect([await json.inputValue(), await send.isDisabled()]).toEqual(["", true]);
      await json.fill("true");
      expect(await send.isEnabled()).toBe(true);
      await page.getByRole("button", { name: "Answer with a text" }).click();
      expect([await text.inputValue(), await send.isDisabled()]).toEqual(["", true]);
      await page.getByRole("button", { name: "Answer with JSON" }).click();
      await json.fill("null");
      await send.click();
      await page.getByText("Twice?").waitFor();
      expect([await text.inputValue(), await send.isDisabled()]).toEqual(["", true]);
      await page.getByRole("button", { name: "Answer with JSON" }).click();
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
      await page.getByLabel("Answer", { exact: true }).fill("neither");
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
      await page.getByLabel("Answer", { exact: true }).waitFor();
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
      expect(await heightOf(question)).toBeLessThanOrEqual(480);
      expect(await heightOf(page.getByRole("log", { name: "Messages" }))).toBeGreaterThan(150);
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
      expect(await drawn()).toBeLessThan(10_000);
      await action.getByRole("button", { name: "More of 588,891 characters" }).click();
      await eventually("there is more of it", async () => (await drawn()) > 50_000 || undefined);
    });

    test("becomes a field only when a person wants to edit it, if it has megabytes", async () => {
      const { page } = shown;
      await begin("asking");
      await say("inbox of megabytes");
      const action = page.getByRole("group", { name: "transfer" });
      const places = () => action.getByRole("textbox", { name: "places" });
      await action.getByRole("button", { name: "Edit all 588,891 characters of places" }).waitFor();
      expect(await places().count()).toBe(0);
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

    test("shows what was edited, and sends a draft as it is only by a button that says so", async () => {
      const { page } = shown;
      await begin("asking");
      await say("draft");
      const draft = page.getByRole("textbox", { name: "Draft" });
      expect(await draft.inputValue()).toBe("Dear Ada, thank you.");
      await page.getByRole("button", { name: "Send the draft as it is" }).waitFor();
      // Nothing was written, so this key sends nothing.
      await draft.press("Control+Enter");
      await draft.fill("Dear Bob, thank you.");
      const changes = page.getByRole("group", { name: "Changes of the draft" });
      expect(await changes.locator("del").allTextContents()).toEqual(["Ada"]);
      expect(await changes.locator("ins").allTextContents()).toEqual(["Bob"]);
      expect(await shown.violations()).toEqual([]);
      await page.getByRole("button", { name: "Undo the changes" }).click();
      expect(await changes.count()).toBe(0);
      await draft.fill("Dear Bob, thank you.");
      await draft.press("Control+Enter");
      await messages().getByText('Answered: "Dear Bob, thank you."').waitFor();
      await say("draft with options");
      await page.getByRole("button", { name: "approve" }).waitFor();
      expect(await page.getByRole("button", { name: /^Send the/ }).count()).toBe(0);
      await draft.fill("Dear Bob.");
      // The option would approve the text before the edit.
      expect(await page.getByRole("button", { name: "approve" }).isDisabled()).toBe(true);
      await page.getByRole("button", { name: "Send the edited draft" }).click();
      await messages().getByText('Answered: "Dear Bob."').waitFor();
    });

    test("keeps its actions in sight in every window, and Enter in a field sends nothing", async () => {
      const { page } = shown;
      await begin("asking");
      await say("mail");
      const action = page.getByRole("group", { name: "send_email" });
      for (const [width, height] of [
        [1440, 900],
        [1280, 720],
        [390, 844],
      ] as const) {
        await page.setViewportSize({ width, height });
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme });
          expect(await shown.violations()).toEqual([]);
        }
        for (const name of ["Accept", "Respond", "Ignore"]) {
          const box = await action.getByRole("button", { name }).boundingBox();
          expect(box !== null && box.y >= 0 && box.y + box.height <= height).toBe(true);
        }
        expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
      }
      await page.setViewportSize({ width: 1400, height: 900 });
      await action.getByLabel("to", { exact: true }).press("Enter");
      await action.getByLabel("urgent").check();
      await action.getByLabel("copies").fill("two");
      await action.getByText("This is not a number.").waitFor();
      expect(await action.getByRole("button", { name: "Send the edited arguments" }).isDisabled()).toBe(true);
      await action.getByLabel("copies").fill("2");
      await action.getByLabel("copies").press("Control+Enter");
      const answer = messages()
        .last()
        .getByText(/^Answered: /);
      await answer.waitFor();
      expect(await answer.textContent()).toContain('"urgent":true');
      expect(await answer.textContent()).toContain('"copies":2');
    });

    test("has thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
