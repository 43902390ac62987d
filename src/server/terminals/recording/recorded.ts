/** The marker of a recording that came to its bound, as JSON: no program can print one. What follows it is no output of the terminal. */
export const fullMark: string = JSON.stringify('full')

/** What a recording that was not ended tells of its terminal. */
export interface Recorded {
  /** Where it goes on: bytes of its whole lines, seconds of its last event, and the last output's sequence. */
  state: { bytes: number; seconds: number; sequence: number; isFull: boolean }
  /** The last size, where one was recorded. */
  size: { cols: number; rows: number } | null
}

const eventLine = /^\[(?<seconds>\d+\.\d+), "(?<code>[orm])", (?<json>".*")\]$/
const sizeText = /^"(\d+)x(\d+)"$/
const sequenceText = /^"sequence (\d+)"$/
const newline = 10

/** Lines that a newline ends, with the offset after it. */
async function* linesOf(content: AsyncIterable<Buffer>): AsyncGenerator<{ line: Buffer; end: number }> {
  let rest: Buffer = Buffer.alloc(0)
  let offset = 0
  for await (const chunk of content) {
    const bytes = Buffer.concat([rest, chunk])
    let from = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, from)) {
      yield { line: bytes.subarray(from, end), end: offset + end + 1 }
      from = end + 1
    }
    rest = bytes.subarray(from)
    offset += from
  }
}

/** Reads a recording as a crash may have left it, and tells `output` of each output in it. The first line is the header. */
export async function readRecorded(
  content: AsyncIterable<Buffer>,
  output: (sequence: number, json: string) => void,
): Promise<Recorded> {
  const state = { bytes: 0, seconds: 0, sequence: -1, isFull: false }
  let size: Recorded['size'] = null
  for await (const { line, end } of linesOf(content)) {
    const isHeader = line.length + 1 === end
    const event = eventLine.exec(line.toString('utf8'))?.groups
    if (!isHeader && !event) continue
    state.bytes = end
    if (!event) continue
    const { seconds, code, json = '' } = event
    state.seconds = Number(seconds)
    const resized = code === 'r' ? sizeText.exec(json) : null
    if (resized) size = { cols: Number(resized[1]), rows: Number(resized[2]) }
    const missing = code === 'm' ? sequenceText.exec(json) : null
    if (missing) state.sequence = Number(missing[1]) - 1
    if (code === 'm' && json === fullMark) state.isFull = true
    if (code === 'o' && !state.isFull) output(++state.sequence, json)
  }
  return { state, size }
}
