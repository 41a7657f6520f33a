import { expect, test } from "vitest";
import { giveChunks, STREAMED_MESSAGES } from "../../src/graphs/model-chunks.ts";

/** Chat models whose chunks are passed to callbacks, with a class that has the relevant parts of LangChain's. */

interface Chunk {
  text: string;
  message: { content: string };
}
const chunk = (text: string): Chunk => ({ text, message: { content: text } });

const managerOf = (handlers: object[]) => {
  const given: string[] = [];
  const handleLLMNewToken = (token: string): Promise<void> => Promise.resolve(void given.push(token));
  return { runId: "1", handlers, given, handleLLMNewToken };
};
type Manager = ReturnType<typeof managerOf>;
const ofStreamedRun = () => managerOf([{ [STREAMED_MESSAGES]: new Set<string>() }]);

/** A new copy of the class, because it is changed permanently. */
const langChain = () => {
  class BaseChatModel {
    async *_streamResponseChunks(_messages: unknown, _options: unknown, _manager?: Manager) {
      yield await Promise.resolve(chunk("of the base"));
    }
    async generate(manager: Manager): Promise<string[]> {
      const texts: string[] = [];
      for await (const { text } of this._streamResponseChunks([], {}, manager)) texts.push(text);
      return texts;
    }
    _streamIterator(manager: Manager) {
      return this._streamResponseChunks([], {}, manager);
    }
  }
  return { BaseChatModel };
};

const silentIn = ({ BaseChatModel }: ReturnType<typeof langChain>) =>
  class Silent extends BaseChatModel {
    readonly #said = ["a", "b"];
    managers: unknown[] = [];
    override async *_streamResponseChunks(_messages: unknown, _options: unknown, manager?: Manager) {
      this.managers.push(manager);
      for (const text of this.#said) yield await Promise.resolve(chunk(text));
    }
  };

test("in a run that streams messages each chunk is passed on, with either way to call a model", async () => {
  const module = langChain();
  giveChunks(module);
  const model = new (silentIn(module))();
  const invoked = ofStreamedRun();
  expect(await model.generate(invoked)).toEqual(["a", "b"]);
  expect(invoked.given).toEqual(["a", "b"]);
  const streamed = ofStreamedRun();
  for await (const _ of model._streamIterator(streamed));
  expect(streamed.given).toEqual(["a", "b"]);
});

test("any other run calls the model unchanged", async () => {
  const module = langChain();
  giveChunks(module);
  const model = new (silentIn(module))();
  const manager = managerOf([{ name: "another" }]);
  expect(await model.generate(manager)).toEqual(["a", "b"]);
  expect(manager.given).toEqual([]);
  expect(model.managers[0]).toBe(manager);
});

test("a model that extends another class passes its chunks once", async () => {
  const module = langChain();
  giveChunks(module);
  giveChunks(module);
  class Louder extends silentIn(module) {
    override async *_streamResponseChunks(messages: unknown, options: unknown, manager?: Manager) {
      for await (const { text } of super._streamResponseChunks(messages, options, manager))
        yield chunk(text.toUpperCase());
    }
  }
  const model = new Louder();
  await model.generate(ofStreamedRun());
  const manager = ofStreamedRun();
  await model.generate(manager);
  expect(manager.given).toEqual(["A", "B"]);
});

test("a reader that stops ends the model's stream", async () => {
  const module = langChain();
  giveChunks(module);
  let isEnded = false;
  class Endless extends module.BaseChatModel {
    override async *_streamResponseChunks() {
      try {
        for (;;) yield await Promise.resolve(chunk("x"));
      } finally {
        isEnded = true;
      }
    }
  }
  for await (const _ of new Endless()._streamIterator(ofStreamedRun())) break;
  expect(isEnded).toBe(true);
});

test("a model that can't stream stays unchanged, and so does a class that is not LangChain's", async () => {
  const module = langChain();
  giveChunks(module);
  const model = new module.BaseChatModel();
  await model.generate(ofStreamedRun());
  expect(Object.hasOwn(model, "_streamResponseChunks")).toBe(false);
  class Another {
    generate = undefined;
  }
  giveChunks({ BaseChatModel: Another });
  giveChunks({});
  expect(Object.getOwnPropertyNames(Another.prototype)).toEqual(["constructor"]);
});
