import { cancel, confirm, isCancel, select, text } from "@clack/prompts";
import { resolve } from "node:path";
import { NotDoneError } from "../run-command.ts";
import { assertFolderName, assertRoomIn } from "./project.ts";
import {
  LANGUAGE_NAMES,
  LANGUAGES,
  TEMPLATE_HINTS,
  TEMPLATES,
  type Language,
  type Template,
} from "./templates.ts";

/** The prompt returns a symbol for Ctrl-C. */
const answered = <Answer>(answer: Answer): Exclude<Answer, symbol> => {
  if (!isCancel(answer)) return answer as Exclude<Answer, symbol>;
  cancel("Nothing was made.");
  throw new NotDoneError();
};

const FOLDER_CHARACTERS = 1_000;

const assertFits = async (folder: string): Promise<void> => {
  assertFolderName(folder);
  await assertRoomIn(resolve(folder));
};

/** Questions throw NotDoneError on Ctrl-C. */
export const askFolder = async (usual: string): Promise<string> => {
  for (;;) {
    const folder = answered(
      await text({
        message: "Where shall the project be?",
        placeholder: usual,
        defaultValue: usual,
        validate: (value) => ((value ?? "").length > FOLDER_CHARACTERS ? "That is too long." : undefined),
      }),
    );
    const problem = await assertFits(folder).catch((error: Error) => error.message);
    if (problem === undefined) return folder;
    cancel(problem);
  }
};

export const askTemplate = async (): Promise<Template> =>
  answered(
    await select({
      message: "What shall it begin as?",
      // The prompt shows only the selected option's hint.
      options: TEMPLATES.map((value) => ({ value, label: `${value}: ${TEMPLATE_HINTS[value]}` })),
    }),
  );

export const askLanguage = async (): Promise<Language> =>
  answered(
    await select({
      message: "In which language?",
      options: LANGUAGES.map((value) => ({ value, label: LANGUAGE_NAMES[value] })),
    }),
  );

export const askInstall = async (command: string): Promise<boolean> =>
  answered(await confirm({ message: `Install its packages now, with ${command}?` }));
