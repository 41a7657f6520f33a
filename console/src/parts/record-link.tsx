import { Link } from "wouter";

/** The end, because UUIDv7 of the same moment begin alike. */
export const shortId = (id: string): string => id.slice(-8);

export const RecordLink = ({ id, href }: { id: string; href: string }) => (
  <Link href={href} title={id}>
    <code>…{shortId(id)}</code>
  </Link>
);
