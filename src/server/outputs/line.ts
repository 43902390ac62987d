import type { NewEntry } from './outputs.ts'

/** Shorter text is cheaper to write as JSON anew than to keep in pieces. */
const inOnePiece = 4096
const lineEnd = Buffer.from('}\n')

/** The entry as a line of JSON; long text that came as JSON goes on as it is. */
export function lineOf(entry: NewEntry): readonly Uint8Array[] {
  const { hostId, stream, sequence, timestamp, data, json } = entry
  const head = { hostId, stream, sequence, timestamp }
  if (!json || json.length < inOnePiece) return [Buffer.from(`${JSON.stringify({ ...head, data })}\n`)]
  return [Buffer.from(`${JSON.stringify(head).slice(0, -1)},"data":`), json, lineEnd]
}
