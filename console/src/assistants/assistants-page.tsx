import { useParams } from "wouter";
import { AssistantDetail } from "./detail.tsx";
import { AssistantList } from "./list.tsx";

export default function AssistantsPage() {
  const { assistantId } = useParams<{ assistantId?: string }>();
  return assistantId === undefined ? (
    <AssistantList />
  ) : (
    <AssistantDetail key={assistantId} assistantId={assistantId} />
  );
}
