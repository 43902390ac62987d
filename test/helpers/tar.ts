import { extract, type Headers, pack } from 'tar-stream'

export type TarEntry = Omit<Headers, 'size'> & { readonly content?: string | Buffer }

/** A tar of these entries, valid or not. */
export async function tarOf(entries: readonly TarEntry[]): Promise<Buffer> {
  const tar = pack()
  for (const { content, ...header } of entries) {
    if (content === undefined) tar.entry(header).end()
    else tar.entry(header, content)
  }
  tar.finalize()
  const pieces: Buffer[] = []
  for await (const piece of tar) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** One raw tar header (POSIX ustar), for entries that no library writes. */
export function rawHeader(name: string | Buffer, flag: string, size: number): Buffer {
  const header = Buffer.alloc(512)
  Buffer.from(name).copy(header)
  header.write('0000644\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0', 136)
  header.write('        ', 148)
  header.write(flag, 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

/** The contents of a tar: the type of each entry, with its text or link target. */
export async function inTar(bytes: Buffer): Promise<Record<string, string>> {
  const tar = extract()
  tar.end(bytes)
  const found: Record<string, string> = {}
  for await (const entry of tar) {
    const { name, type, linkname } = entry.header
    const pieces: Buffer[] = []
    for await (const piece of entry) pieces.push(piece)
    found[name] = type === 'file' ? Buffer.concat(pieces).toString() : `${type} ${linkname ?? ''}`.trim()
  }
  return found
}
