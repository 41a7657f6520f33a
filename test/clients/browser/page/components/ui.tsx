/** Components in a project's `ui`: with the page's React, the SDK's stream, styles, and a picture. */
import { useStreamContext } from "@langchain/langgraph-sdk/react-ui";
import { useState } from "react";
import "./card.css";
import picture from "./dot.svg";

function Card({ title }: { title: string }) {
  const { assistantId } = useStreamContext() as unknown as { assistantId: string };
  const [clicks, setClicks] = useState(0);
  return (
    <section className="card" data-testid="card">
      <img src={picture} alt="" />
      <h2>
        {title} of {assistantId}
      </h2>
      <button onClick={() => setClicks(clicks + 1)}>clicked {clicks} times</button>
    </section>
  );
}

const Plain = ({ text }: { text: string }) => <p data-testid="plain">{text}</p>;

export default { card: Card, 'it\'s "plain" & </simple>': Plain };
