/** The paths that lead from a place back to itself. `edges`: the places that each place imports. */
export const cyclesIn = (edges: ReadonlyMap<string, ReadonlySet<string>>): string[] => {
  const found: string[] = [];
  const finished = new Set<string>();
  const visit = (place: string, trail: string[]): void => {
    if (finished.has(place)) return;
    const at = trail.indexOf(place);
    if (at !== -1) {
      found.push([...trail.slice(at), place].join(" -> "));
      return;
    }
    for (const next of edges.get(place) ?? []) visit(next, [...trail, place]);
    finished.add(place);
  };
  for (const place of edges.keys()) visit(place, []);
  return found;
};
