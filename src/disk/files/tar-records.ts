import type { Headers } from 'tar-stream'
import { bytesOfName, nameOf } from './byte-names.ts'

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
