import { open } from 'node:fs/promises'
import { fullMark, type RecordingState } from './recording.ts'

/** What a recording that was not ended tells of its session. */
export interface Recovered {
  state: RecordingState
  /** The last size, where one was recorded. */
  size: { cols: number; rows: number } | null
}

interface Event {
  seconds: number
  code: string
  json: string
}

const eventLine = /^\[(\d+\.\d+), "([orm])", (".*")\]$/
const sizeText = /^"(\d+)x(\d+)"$/
const sequenceText = /^"sequence (\d+)"$/
const readBytes = 256 * 1024
const newline = 10

function eventOf(line: Buffer): Event | null {
  const text = line.toString('utf8')
  const found = eventLine.exec(text)
  if (!found) return null
  const [, seconds = '', code = '', json = ''] = found
  return { seconds: Number(seconds), code, json }
}

/**
 * Reads a recording whose session was not ended, tells `output` of each of its outputs, and cuts off what was torn: the
 * file ends with its last whole event then.
 */
export async function recoverRecording(
  path: string,
  output: (sequence: number, json: string) => void,
): Promise<Recovered> {
  const file = await open(path, 'r+')
  try {
    let [sequence, seconds, good, offset] = [-1, 0, 0, 0]
    let isFull = false
    let size: Recovered['size'] = null
    let rest = Buffer.alloc(0)
    const buffer = Buffer.allocUnsafe(readBytes)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, readBytes, offset + rest.length)
      if (bytesRead === 0) break
      const bytes = Buffer.concat([rest, buffer.subarray(0, bytesRead)])
      let from = 0
      for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, from)) {
        const line = bytes.subarray(from, end)
        from = end + 1
        const isHeader = offset + end === line.length && good === 0
        const event = isHeader ? null : eventOf(line)
        if (!isHeader && event === null) continue
        good = offset + end + 1
        if (event === null) continue
        seconds = event.seconds
        const resized = event.code === 'r' ? sizeText.exec(event.json) : null
        if (resized) size = { cols: Number(resized[1]), rows: Number(resized[2]) }
        const missing = event.code === 'm' ? sequenceText.exec(event.json) : null
        if (missing) sequence = Number(missing[1]) - 1
        if (event.code === 'm' && event.json === fullMark) isFull = true
        if (event.code === 'o' && !isFull) output(++sequence, event.json)
      }
      rest = bytes.subarray(from)
      offset += from
    }
    await file.truncate(good)
    await file.datasync()
    return { state: { bytes: good, seconds, sequence, isFull }, size }
  } finally {
    await file.close()
  }
}
