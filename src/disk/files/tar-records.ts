import type { Headers } from 'tar-stream'
import { bytesOfName, nameOf } from './byte-names.ts'

/** A header with its pax records, of which the types of tar-stream do not know. */
interface Recorded extends Headers {
  pax?: Record<string, string> | null
}

/** Records of an entry (pax) for names that its `path` and `linkpath` cannot hold: their bytes, as Latin-1. */
const nameRecords = { name: 'RSM.path', linkname: 'RSM.linkpath' } as const
/** Bytes that were read of the file before it, which became shorter than its header says. */
const cutRecord = 'RSM.cut'

/** A name that has U+FFFD itself needs a record too, because a reader takes that for a lost byte. */
const needsRecord = /[\ufffd\udc80-\udcff]/u

/** The header with what its names need; an rsm that does not know the records refuses such names. */
export function withByteNames(header: Recorded): Recorded {
  const pax: Record<string, string> = { ...header.pax }
  for (const field of ['name', 'linkname'] as const) {
    const name = header[field] ?? ''
    if (needsRecord.test(name)) pax[nameRecords[field]] = bytesOfName(name).toString('latin1')
  }
  return Object.keys(pax).length === 0 ? header : { ...header, pax }
}

/** A name of an entry, from its record where it has one; null where bytes of it were lost. */
export function nameIn(header: Recorded, field: keyof typeof nameRecords): string | null {
  const record = header.pax?.[nameRecords[field]]
  if (record !== undefined) return nameOf(Buffer.from(record, 'latin1'))
  const name = header[field] ?? ''
  return name.includes('\ufffd') ? null : name
}

/** Says how much was read of the file before: beside a directory that has an entry already, so that an older rsm reads the tree. */
export const withCut = (directory: Headers, bytes: number): Recorded => ({
  ...directory,
  pax: { [cutRecord]: String(bytes) },
})

export function cutIn({ pax }: Recorded): number | null {
  const cut = pax?.[cutRecord]
  return cut === undefined ? null : Number(cut)
}
