export default function CronsPage() {
  return <h1>Crons</h1>;
}
