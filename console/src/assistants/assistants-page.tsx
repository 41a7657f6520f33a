export default function AssistantsPage() {
  return <h1>Assistants</h1>;
}
