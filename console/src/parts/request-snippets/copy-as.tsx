import { Copy as CopyIcon } from "lucide-react";
import { useState } from "react";
import { Menu } from "../../design/menu.tsx";
import { useConnection, type Connection } from "../../server/connection.tsx";
import { snippetsOf, type ApiRequest, type Snippets, type Target } from "./snippets.ts";

const LANGUAGES: readonly (readonly [keyof Snippets, string])[] = [
  ["curl", "curl"],
  ["javascript", "JavaScript"],
  ["python", "Python"],
];

/** Names the header of the key, without the key. */
const targetOf = ({ apiUrl, headers }: Pick<Connection, "apiUrl" | "headers">): Target => {
  const [first] = Object.entries(headers);
  if (first === undefined) return { apiUrl, key: undefined };
  const [header, value] = first;
  const [prefix = ""] = /^(Bearer|Basic) /i.exec(value) ?? [];
  return { apiUrl, key: { header, prefix } };
};

/** Copies the request as a text that other programs can run. */
export const CopyAs = ({ request, isDisabled = false }: { request(): ApiRequest; isDisabled?: boolean }) => {
  const connection = useConnection();
  const [said, setSaid] = useState("");
  const copy = async (language: keyof Snippets, name: string): Promise<void> => {
    try {
      await navigator.clipboard.writeText(snippetsOf(request(), targetOf(connection))[language]);
      setSaid(`Copied as ${name}.`);
    } catch {
      setSaid("Not copied: the browser did not allow it.");
    }
  };
  return (
    <>
      <span role="status" className="faint">
        {said}
      </span>
      <Menu
        trigger={
          <button type="button" className="plain" disabled={isDisabled}>
            <CopyIcon aria-hidden size={16} strokeWidth={1.75} />
            Copy as…
          </button>
        }
        items={LANGUAGES.map(([language, name]) => ({
          label: name,
          onSelect: () => void copy(language, name),
        }))}
      />
    </>
  );
};
