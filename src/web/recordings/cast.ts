import { recordingSize } from '../../core/terminals/terminal.ts'

/** An event of a recording (asciicast v2): output, or a new size. */
export interface CastEvent {
  /** Seconds from the start. */
  readonly at: number
  readonly kind: 'o' | 'r'
  readonly data: string
}

export interface Cast {
  readonly cols: number
  readonly rows: number
  readonly events: readonly CastEvent[]
}

export function resizeOf(data: string): { cols: number; rows: number } {
  const [cols, rows] = data.split('x').map(Number)
  return recordingSize(cols, rows)
}

function eventOf(line: string): CastEvent | undefined {
  const value = JSON.parse(line) as unknown
  if (!Array.isArray(value)) return undefined
  const [at, kind, data] = value as unknown[]
  if (typeof at !== 'number' || typeof data !== 'string' || (kind !== 'o' && kind !== 'r')) return undefined
  return { at, kind, data }
}

/** Parses a recording; ignores a truncated last line. Throws if it is not a recording. */
export function parseCast(text: string): Cast {
  const [head = '', ...lines] = text.split('\n')
  const { version, width, height } = JSON.parse(head) as Record<string, unknown>
  if (version !== 2) throw new Error('This is not a recording in the asciicast v2 format')
  const events: CastEvent[] = []
  for (const line of lines) {
    if (line === '') continue
    try {
      const event = eventOf(line)
      if (event) events.push(event)
    } catch {
      break
    }
  }
  return { ...recordingSize(width, height), events }
}

/** Display time of each event in seconds, with pauses limited to `idleCap`. */
export function timeline(events: readonly CastEvent[], idleCap: number): number[] {
  let before = 0
  let shown = 0
  return events.map(({ at }) => {
    shown += Math.min(Math.max(0, at - before), idleCap)
    before = Math.max(before, at)
    return shown
  })
}

/** Number of the ascending `times` at or before `moment`. */
export function countUntil(times: readonly number[], moment: number): number {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((times[middle] ?? 0) <= moment) low = middle + 1
    else high = middle
  }
  return low
}
