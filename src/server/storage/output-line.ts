import { crc32 } from 'node:zlib'
import type { GatePhase, Phase } from '../../core/tasks/gates.ts'
import type { Stream } from '../../core/tasks/task.ts'
import { checkedJson, checkField, checkFieldBytes, hasCheck, withoutCheck } from '../../disk/digest.ts'
import type { NewEntry } from './ports/outputs.ts'

/** Characters below which it is cheaper to encode the text again than to keep it in pieces. */
const inOnePiece = 4096

type Head = Pick<NewEntry, 'hostId' | 'stream' | 'sequence' | 'timestamp' | 'phase'>

export const lineBegin = ({ hostId, stream, sequence, timestamp, phase }: Head): string =>
  `${JSON.stringify({ hostId, stream, sequence, timestamp, phase }).slice(0, -1)},"data":`

/** Phase as in an entry: absent for the script itself. */
export const gateOf = (phase: Phase | undefined): GatePhase | undefined =>
  phase === 'SCRIPT' ? undefined : phase

/**
 * Bytes of the line of an entry whose text takes `jsonBytes` as JSON. An entry's id is its end in a log of
 * such lines. Both stores use it, so that cursors stay valid when a log moves to the other one.
 */
export const lineBytes = (head: Head, jsonBytes: number): number =>
  lineBegin(head).length + jsonBytes + checkFieldBytes + 1

/** Entry as a line of JSON with its checksum; long text that arrived as JSON is written as it is. */
export function lineOf(entry: NewEntry): readonly Uint8Array[] {
  const { data, json } = entry
  if (!json || json.length < inOnePiece)
    return [Buffer.from(`${checkedJson(`${lineBegin(entry)}${JSON.stringify(data)}}`)}\n`)]
  const begin = Buffer.from(lineBegin(entry))
  return [begin, json, Buffer.from(`${checkField(crc32(json, crc32(begin)))}\n`)]
}

/** Maximum bytes of a line before its text. */
const longestBegin = 200
const beginPattern =
  /^\{"hostId":(\d+),"stream":"(stdout|stderr)","sequence":(\d+),"timestamp":"([^"]+)"(?:,"phase":"(VERIFY|ROLLBACK)")?,"data":/
const quote = 0x22

/** Fields of an entry as returned by `entryJson`; `json`: its text, still encoded. */
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

/** Line of an entry that takes `bytes`, the difference between its id and the previous one. */
export function lineOfLength(piece: Head & { json: Uint8Array }, bytes: number): Buffer {
  const spare = bytes - lineBytes(piece, piece.json.length)
  const begin = Buffer.from(lineBegin(piece))
  // Lines of 0.1.0 have no checksum.
  if (spare === 1 - checkFieldBytes) return Buffer.concat([begin, piece.json, Buffer.from('}\n')])
  const body = Buffer.concat([begin, piece.json, Buffer.alloc(spare, ' ')])
  return Buffer.concat([body, Buffer.from(`${checkField(crc32(body))}\n`)])
}

/** Entry from the JSON of a line, without its newline; null if it is damaged. */
export function parseEntry(line: Buffer): NewEntry | null {
  const json = withoutCheck(line)
  try {
    const entry = json && (JSON.parse(json.toString('utf8')) as Partial<NewEntry> | null)
    return typeof entry?.data === 'string' && typeof entry.hostId === 'number' ? (entry as NewEntry) : null
  } catch {
    return null
  }
}

/** Fields of an entry as one JSON object; null if it is damaged. */
export function entryJson(line: Buffer): Buffer | null {
  if (hasCheck(line)) return withoutCheck(line)
  // A line of 0.1.0, or one with a damaged checksum field: keep only the fields of an entry.
  const entry = parseEntry(line)
  if (entry === null) return null
  return Buffer.from(`${lineBegin(entry)}${JSON.stringify(entry.data)}}`)
}
