import type { Encryption } from "../../../platform/database/database.ts";
import { takeOutLargeStrings } from "../../values/large-strings.ts";
import { contentHash } from "./content-hash.ts";
import type { NewContent } from "./new-rows.ts";

/** The contents that a writer of a thread has to store. Each is sent once. */
export class NewContents {
  private readonly knownHashes = new Set<string>();
  private contents: NewContent[] = [];

  constructor(private readonly encryption: Encryption) {}

  take(): NewContent[] {
    const taken = this.contents;
    this.contents = [];
    return taken;
  }

  /** A content that was read isn't sent again. */
  remember(hash: string): void {
    this.knownHashes.add(hash);
  }

  /** Returns the hash. */
  add(wholeText: string): string {
    // A string alone is itself the content.
    const text = wholeText.startsWith('"') ? wholeText : this.withoutLargeStrings(wholeText);
    const hash = contentHash(text, this.encryption);
    if (!this.knownHashes.has(hash)) {
      this.knownHashes.add(hash);
      this.contents.push({ hash, text, wholeText });
    }
    return hash;
  }

  /** The text as a row stores it. Its large strings are contents of their own. */
  withoutLargeStrings(text: string): string {
    return takeOutLargeStrings(text, (literal) => {
      const hash = contentHash(literal, this.encryption);
      if (!this.knownHashes.has(hash)) {
        this.knownHashes.add(hash);
        this.contents.push({ hash, text: literal });
      }
      return hash;
    });
  }
}
