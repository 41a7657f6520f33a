export default function GraphPage() {
  return <h1>Graph</h1>;
}
