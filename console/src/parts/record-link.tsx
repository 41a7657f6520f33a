import { Link } from "wouter";

/** The end of an id, as long as people compare it: the beginning of a UUIDv7 is a time, which runs of a moment share. */
export const shortId = (id: string): string => id.slice(-8);

/** A record by the end of its id; all of it on hover. `href`: the address that shows it. */
export const RecordLink = ({ id, href }: { id: string; href: string }) => (
  <Link href={href} title={id}>
    <code>…{shortId(id)}</code>
  </Link>
);
