/** Pictures of pages as PNG with a palette: half the size of a browser's, because a page has few colours. */
import { crc32, deflateSync } from "node:zlib";
import type { Page } from "playwright-core";

const COLOURS = 256;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

interface Pixels {
  width: number;
  height: number;
  /** Red, green and blue as one number, row by row. */
  colours: Uint32Array;
}

/** A browser draws the picture, because no installed package reads a PNG. */
const pixelsOf = async (page: Page, png: Buffer): Promise<Pixels> => {
  const { width, height, bytes } = (await page.evaluate(`(async () => {
    const answer = await fetch("data:image/png;base64,${png.toString("base64")}");
    const image = await createImageBitmap(await answer.blob());
    const { width, height } = image;
    const context = new OffscreenCanvas(width, height).getContext("2d");
    context.drawImage(image, 0, 0);
    const blob = new Blob([context.getImageData(0, 0, width, height).data]);
    const reader = new FileReader();
    const read = new Promise((resolve) => { reader.onload = resolve; });
    reader.readAsDataURL(blob);
    await read;
    return { width, height, bytes: reader.result.slice(reader.result.indexOf(",") + 1) };
  })()`)) as { width: number; height: number; bytes: string };
  const data = Buffer.from(bytes, "base64");
  const colours = new Uint32Array(width * height);
  for (let place = 0; place < colours.length; place += 1) colours[place] = data.readUInt32BE(place * 4) >>> 8;
  return { width, height, colours };
};

const distance = (one: number, other: number): number =>
  [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);

/** The most frequent colours; the others are shades at the edges of letters, and become the nearest of these. */
const paletteOf = (colours: Uint32Array): { palette: number[]; index: Map<number, number> } => {
  const counts = new Map<number, number>();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const ranked = [...counts.keys()].sort((one, other) => (counts.get(other) ?? 0) - (counts.get(one) ?? 0));
  const palette = ranked.slice(0, COLOURS);
  const nearest = (colour: number): number =>
    palette.reduce(
      (best, known, place) => (distance(colour, known) < distance(colour, palette[best] ?? 0) ? place : best),
      0,
    );
  return { palette, index: new Map(ranked.map((colour) => [colour, nearest(colour)])) };
};

const chunk = (name: string, data: Buffer): Buffer => {
  const named = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
};

/** @param page any open page: its browser reads the picture */
export const withPalette = async (page: Page, png: Buffer): Promise<Buffer> => {
  const { width, height, colours } = await pixelsOf(page, png);
  const { palette, index } = paletteOf(colours);
  const rows = Buffer.alloc((width + 1) * height); // each row begins with its filter: none
  for (let row = 0; row < height; row += 1)
    for (let column = 0; column < width; column += 1)
      rows[row * (width + 1) + column + 1] = index.get(colours[row * width + column] ?? 0) ?? 0;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8); // one byte for each pixel: an index into the palette
  const entries = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("PLTE", entries),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
};
