import { MemorySaver } from "@langchain/langgraph-checkpoint";
import type { SourceValue } from "./source.ts";

export class ImportError extends Error {
  override readonly name = "ImportError";
}

/**
 * Deserializes a thread's values, but creates each distinct element once, because the checkpointer recognises stored
 * elements by identity.
 */
export class ThreadValues {
  private readonly serializer = new MemorySaver().serde;
  private readonly objects = new Map<string, unknown>();

  async revive({ type, blob }: SourceValue): Promise<unknown> {
    if (type === "empty" || blob === null) return undefined;
    if (type === "bytes") return new Uint8Array(blob);
    if (type !== "json" && type !== null) {
      throw new ImportError(
        `it holds values of the type '${type}', which LangGraph.js doesn't read (LangGraph for Python wrote them)`,
      );
    }
    return await this.reviveTree(JSON.parse(blob.toString("utf8")));
  }

  async reviveMetadata(metadata: unknown): Promise<object> {
    return (await this.serializer.loadsTyped("json", JSON.stringify(metadata ?? {}))) as object;
  }

  remember({ type, blob }: SourceValue, live: unknown): void {
    if (type !== "json" || blob === null || !Array.isArray(live)) return;
    const trees: unknown = JSON.parse(blob.toString("utf8"));
    if (!Array.isArray(trees) || trees.length !== live.length) return;
    for (const [index, tree] of trees.entries()) {
      if (isObject(tree)) this.objects.set(JSON.stringify(tree), live[index]);
    }
  }

  private async reviveTree(tree: unknown): Promise<unknown> {
    if (!Array.isArray(tree)) return await this.reviveElement(tree);
    const elements: unknown[] = [];
    for (const element of tree)
      elements.push(isObject(element) ? await this.reviveElement(element) : element);
    return elements;
  }

  private async reviveElement(tree: unknown): Promise<unknown> {
    if (!isObject(tree)) return tree;
    const text = JSON.stringify(tree);
    if (this.objects.has(text)) return this.objects.get(text);
    const live: unknown = await this.serializer.loadsTyped("json", text);
    this.objects.set(text, live);
    return live;
  }
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
