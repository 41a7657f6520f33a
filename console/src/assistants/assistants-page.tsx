import { useParams } from "wouter";
import { AssistantDetail } from "./detail.tsx";
import { AssistantList } from "./list.tsx";

/** The assistants; one of them, if the address names it. */
export default function AssistantsPage() {
  const { assistantId } = useParams<{ assistantId?: string }>();
  return assistantId === undefined ? (
    <AssistantList />
  ) : (
    <AssistantDetail key={assistantId} assistantId={assistantId} />
  );
}
