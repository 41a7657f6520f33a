export default function StorePage() {
  return <h1>Store</h1>;
}
