import { crc32 } from 'node:zlib'
import { checkedJson, checkField, hasCheck, withoutCheck } from '../../../disk/checked-json.ts'
import type { NewEntry } from '../../seams/outputs.ts'

/** Shorter text is cheaper to write as JSON anew than to keep in pieces. */
const inOnePiece = 4096

/** The entry as a line of JSON with its check; long text that came as JSON goes on as it is. */
export function lineOf(entry: NewEntry): readonly Uint8Array[] {
  const { hostId, stream, sequence, timestamp, data, json } = entry
  const head = { hostId, stream, sequence, timestamp }
  if (!json || json.length < inOnePiece)
    return [Buffer.from(`${checkedJson(JSON.stringify({ ...head, data }))}\n`)]
  const begin = Buffer.from(`${JSON.stringify(head).slice(0, -1)},"data":`)
  return [begin, json, Buffer.from(`${checkField(crc32(json, crc32(begin)))}\n`)]
}

/** The JSON of a line, its end left out, as an entry; null where that is not what was written. */
export function parseEntry(line: Buffer): NewEntry | null {
  const json = withoutCheck(line)
  try {
    const entry = json && (JSON.parse(json.toString('utf8')) as Partial<NewEntry> | null)
    return typeof entry?.data === 'string' && typeof entry.hostId === 'number' ? (entry as NewEntry) : null
  } catch {
    return null
  }
}

/** The fields of the entry as one JSON object; null where that is not what was written. */
export function entryJson(line: Buffer): Buffer | null {
  if (hasCheck(line)) return withoutCheck(line)
  // Of 0.1.0, or what was its check is damaged: nothing but the fields goes on.
  const entry = parseEntry(line)
  if (entry === null) return null
  const { hostId, stream, sequence, timestamp, data } = entry
  return Buffer.from(JSON.stringify({ hostId, stream, sequence, timestamp, data }))
}
