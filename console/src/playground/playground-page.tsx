export default function PlaygroundPage() {
  return <h1>Playground</h1>;
}
