/** A page that shows components of the server like chat front ends: with `LoadExternalComponent` of the SDK. */
import { Client } from "@langchain/langgraph-sdk";
import { LoadExternalComponent } from "@langchain/langgraph-sdk/react-ui";
import { createRoot } from "react-dom/client";

const address = new URL(window.location.href);
const client = new Client({
  apiUrl: address.searchParams.get("api") ?? "",
  ...(address.searchParams.has("key") ? { apiKey: address.searchParams.get("key") ?? "" } : {}),
});
const stream = { client, assistantId: address.searchParams.get("assistant") ?? "" };

const shown = [
  { name: "card", props: { title: "Card" } },
  { name: 'it\'s "plain" & </simple>', props: { text: "just text" } },
];

/** The loader needs only this part of the stream; its type is that of the whole hook. */
type Stream = Parameters<typeof LoadExternalComponent>[0]["stream"];

createRoot(document.body).render(
  shown.map(({ name, props }) => (
    <LoadExternalComponent
      key={name}
      stream={stream as unknown as Stream}
      message={{ type: "ui", id: name, name, props, metadata: {} }}
      fallback={<i>loading {name}</i>}
    />
  )),
);
