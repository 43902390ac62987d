import type { Headers } from 'tar-stream'

/** Lone surrogates represent bytes that are not UTF-8: U+DC80 for 0x80, U+DCFF for 0xff (as PEP 383). */
const escapes = /[\udc80-\udcff]/gu
const isEscaped = /[\udc80-\udcff]/u

export function nameOf(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  if (Buffer.from(text).equals(bytes)) return text
  let name = ''
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] ?? 0
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    const character = bytes.subarray(at, at + length)
    const isText = Buffer.from(character.toString('utf8')).equals(character)
    name += isText ? character.toString('utf8') : String.fromCharCode(0xdc00 + lead)
    at += isText ? length : 1
  }
  return name
}

const isEscape = (part: string) => isEscaped.test(part)
export const bytesOfName = (name: string): Buffer =>
  Buffer.concat(
    name
      .split(/([\udc80-\udcff])/u)
      .map((part) => (isEscape(part) ? Buffer.of(part.charCodeAt(0) - 0xdc00) : Buffer.from(part))),
  )

export const systemPath = (path: string): string | Buffer => (isEscape(path) ? bytesOfName(path) : path)

/** Names for messages, with `\xe9` for a byte that is not UTF-8. */
export const shownNames = (text: string): string =>
  text.replace(escapes, (escape) => `\\x${(escape.charCodeAt(0) - 0xdc00).toString(16)}`)

/** A header with its pax records, which the types of tar-stream lack. */
interface Recorded extends Headers {
  pax?: Record<string, string> | null
}

/** Pax records for names that `path` and `linkpath` cannot hold: their bytes, as Latin-1. */
const nameRecords = { name: 'RSM.path', linkname: 'RSM.linkpath' } as const
/** Actual bytes of the file before it, which shrank while it was read. */
const cutRecord = 'RSM.cut'

/** A name that contains U+FFFD needs a record too, because a reader takes that for a lost byte. */
const needsRecord = /[\ufffd\udc80-\udcff]/u

/** Adds the records for its names; an rsm that does not know the records refuses such names. */
export function withByteNames(header: Recorded): Recorded {
  const pax: Record<string, string> = { ...header.pax }
  for (const field of ['name', 'linkname'] as const) {
    const name = header[field] ?? ''
    if (needsRecord.test(name)) pax[nameRecords[field]] = bytesOfName(name).toString('latin1')
  }
  return Object.keys(pax).length === 0 ? header : { ...header, pax }
}

/** Name of an entry, from its record if it has one; null if bytes were lost. */
export function nameIn(header: Recorded, field: keyof typeof nameRecords): string | null {
  const record = header.pax?.[nameRecords[field]]
  if (record !== undefined) return nameOf(Buffer.from(record, 'latin1'))
  const name = header[field] ?? ''
  return name.includes('\ufffd') ? null : name
}

/** Records the length of the previous file, on a known directory, so that an older rsm can read it. */
export const withCut = (directory: Headers, bytes: number): Recorded => ({
  ...directory,
  pax: { [cutRecord]: String(bytes) },
})

export function cutIn({ pax }: Recorded): number | null {
  const cut = pax?.[cutRecord]
  return cut === undefined ? null : Number(cut)
}
