import { crc32 } from 'node:zlib'
import type { GatePhase, Phase } from '../../core/tasks/gates.ts'
import type { Stream } from '../../core/tasks/task.ts'
import { checkedJson, checkField, checkFieldBytes, hasCheck, withoutCheck } from '../../disk/checked-json.ts'
import type { NewEntry } from './ports/outputs.ts'

/** Shorter text is cheaper to write as JSON anew than to keep in pieces. */
const inOnePiece = 4096

type Head = Pick<NewEntry, 'hostId' | 'stream' | 'sequence' | 'timestamp' | 'phase'>

/** What stands in a line before the text. */
export const lineBegin = ({ hostId, stream, sequence, timestamp, phase }: Head): string =>
  `${JSON.stringify({ hostId, stream, sequence, timestamp, phase }).slice(0, -1)},"data":`

/** As an entry has its phase. */
export const gateOf = (phase: Phase | undefined): GatePhase | undefined =>
  phase === 'SCRIPT' ? undefined : phase

/**
 * Bytes of the line of an entry whose text takes `jsonBytes` as JSON. The id of an entry is where it ends in a log of such lines,
 * whichever store has it, so that cursors stay what they are when a log moves to another one.
 */
export const lineBytes = (head: Head, jsonBytes: number): number =>
  lineBegin(head).length + jsonBytes + checkFieldBytes + 1

/** The entry as a line of JSON with its check; long text that came as JSON goes on as it is. */
export function lineOf(entry: NewEntry): readonly Uint8Array[] {
  const { data, json } = entry
  if (!json || json.length < inOnePiece)
    return [Buffer.from(`${checkedJson(`${lineBegin(entry)}${JSON.stringify(data)}}`)}\n`)]
  const begin = Buffer.from(lineBegin(entry))
  return [begin, json, Buffer.from(`${checkField(crc32(json, crc32(begin)))}\n`)]
}

/** Of a line, what stands before its text takes no more bytes. */
const longestBegin = 200
const beginPattern =
  /^\{"hostId":(\d+),"stream":"(stdout|stderr)","sequence":(\d+),"timestamp":"([^"]+)"(?:,"phase":"(VERIFY|ROLLBACK)")?,"data":/
const quote = 0x22

/** The fields of an entry as `entryJson` answers it; `json`: its text as it stands there. */
export function splitLine(line: Buffer): Head & { json: Buffer } {
  const found = beginPattern.exec(line.toString('latin1', 0, longestBegin))
  if (found) {
    const [begin, hostId, stream, sequence, timestamp = '', phase] = found
    const json = line.subarray(begin.length, line.lastIndexOf(quote) + 1)
    const head = { hostId: Number(hostId), stream: stream as Stream, sequence: Number(sequence), timestamp }
    return { ...head, ...(phase !== undefined && { phase: phase as GatePhase }), json }
  }
  const { data, ...head } = JSON.parse(line.toString('utf8')) as NewEntry
  return { ...head, json: Buffer.from(JSON.stringify(data)) }
}

/** The line of an entry in so many bytes: where it ends less where the one before did. */
export function lineOfLength(piece: Head & { json: Uint8Array }, bytes: number): Buffer {
  const spare = bytes - lineBytes(piece, piece.json.length)
  const begin = Buffer.from(lineBegin(piece))
  // 0.1.0 wrote none with a check.
  if (spare === 1 - checkFieldBytes) return Buffer.concat([begin, piece.json, Buffer.from('}\n')])
  const body = Buffer.concat([begin, piece.json, Buffer.alloc(spare, ' ')])
  return Buffer.concat([body, Buffer.from(`${checkField(crc32(body))}\n`)])
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
  return Buffer.from(`${lineBegin(entry)}${JSON.stringify(entry.data)}}`)
}
