import { StringDecoder } from 'node:string_decoder'
import { RsmError } from '../../core/errors.ts'
import { recordingSize } from '../../core/terminals/terminal.ts'

/** First line of a recording (asciicast v2); `width` and `height` in characters. */
export interface RecordingHeader {
  readonly version: 2
  readonly width: number
  readonly height: number
}

/** Seconds since the beginning, kind (`o` output, `r` a new size as `COLSxROWS`), text. */
export type RecordingEvent = readonly [time: number, kind: string, data: string]

/** A longer line is not part of a recording. */
const longestLine = 64 * 1024 * 1024

async function* linesOf(bytes: AsyncIterable<Buffer | string>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  let pieces: string[] = []
  let length = 0
  for await (const chunk of bytes) {
    const text = typeof chunk === 'string' ? chunk : decoder.write(chunk)
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      pieces.push(text.slice(start, end))
      yield pieces.join('')
      pieces = []
      length = 0
      start = end + 1
    }
    if (start === text.length) continue
    pieces.push(text.slice(start))
    length += text.length - start
    if (length > longestLine) throw new RsmError('too_large', 'a line of the recording is too long')
  }
  if (pieces.length > 0) yield pieces.join('')
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined
  }
}

function isHeader(value: unknown): value is RecordingHeader {
  if (typeof value !== 'object' || value === null) return false
  const { version, width, height } = value as Record<string, unknown>
  return version === 2 && Number.isInteger(width) && Number.isInteger(height)
}

function isEvent(value: unknown): value is RecordingEvent {
  if (!Array.isArray(value)) return false
  const [time, kind, data] = value as unknown[]
  return Number.isFinite(time) && typeof kind === 'string' && typeof data === 'string'
}

/** Reads a recording as it arrives; `what` names it in errors. Stops at a line that is torn or not an event. */
export async function readRecording(
  bytes: AsyncIterable<Buffer | string>,
  what: string,
): Promise<{ header: RecordingHeader; events: AsyncGenerator<RecordingEvent> }> {
  const lines = linesOf(bytes)
  const first = await lines.next()
  const header = first.done === true ? undefined : parse(first.value)
  if (!isHeader(header))
    throw new RsmError('invalid', `${what} is not a recording of a terminal (asciicast v2)`)
  async function* events(): AsyncGenerator<RecordingEvent> {
    for await (const line of lines) {
      const event = parse(line)
      if (isEvent(event)) yield event
      else if (line.trim() !== '') return
    }
  }
  const { cols, rows } = recordingSize(header.width, header.height)
  return { header: { ...header, width: cols, height: rows }, events: events() }
}
