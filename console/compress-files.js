import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const COMPRESSIBLE = /\.(?:js|css|html|svg|json)$/;
const compressions = {
  ".br": (contents) =>
    promisify(brotliCompress)(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
  ".gz": (contents) => promisify(gzip)(contents, { level: 9 }),
};

/** Puts `file.br` and `file.gz` beside each file: the server sends them as they are, and compresses nothing itself. */
export const compressFiles = () => {
  let folder = "";
  return {
    name: "compress-files",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    async closeBundle() {
      const names = await readdir(folder, { recursive: true });
      for (const name of names.filter((one) => COMPRESSIBLE.test(one))) {
        const contents = await readFile(join(folder, name));
        for (const [ending, compress] of Object.entries(compressions)) {
          await writeFile(join(folder, `${name}${ending}`), await compress(contents));
        }
      }
    },
  };
};
