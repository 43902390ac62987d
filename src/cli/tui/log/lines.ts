import type { LogEntry } from '../../../core/protocol/http/logs.ts'
import type { Stream } from '../../../core/tasks/task.ts'
import { phaseMark } from '../../output/lines.ts'
import { sanitize } from '../../text/sanitize.ts'
import { widthOf, withoutBidi } from '../../text/width.ts'

export interface LogLine {
  /** Id of the entry in which it ends, so far. */
  readonly id: number
  readonly hostId: number
  readonly hostname: string
  readonly stream: Stream
  readonly text: string
}

/** Characters; a longer line is cut, with the number omitted. */
const longestLine = 8_192
const tab = 8

function withoutTabs(text: string): string {
  if (!text.includes('\t')) return text
  let shown = ''
  let column = 0
  for (const [at, piece] of text.split('\t').entries()) {
    const gap = at === 0 ? 0 : tab - (column % tab)
    shown += ' '.repeat(gap) + piece
    column += gap + widthOf(piece)
  }
  return shown
}

/** A line overwritten with carriage returns, such as a progress bar, shows its last version. */
function lastWritten(raw: string): string {
  if (!raw.includes('\r')) return raw
  const whole = raw.replace(/(?<!\r)\r+$/, '')
  return whole.slice(whole.lastIndexOf('\r') + 1)
}

function shownText(raw: string, omitted: number): string {
  const text = withoutTabs(withoutBidi(sanitize(lastWritten(raw))))
  return omitted > 0 ? `${text} (${omitted} characters more)` : text
}

interface OpenLine {
  raw: string
  omitted: number
  last: LogEntry
}

export class LogLines {
  readonly #open = new Map<string, OpenLine>()

  push(entry: LogEntry): LogLine[] {
    const key = `${entry.hostId} ${entry.stream} ${entry.phase ?? ''}`
    const lines: LogLine[] = []
    let from = 0
    for (let end = entry.data.indexOf('\n'); end !== -1; end = entry.data.indexOf('\n', from)) {
      this.#add(key, entry, entry.data.slice(from, end))
      lines.push(this.#line(this.#open.get(key) as OpenLine))
      this.#open.delete(key)
      from = end + 1
    }
    if (from < entry.data.length) this.#add(key, entry, entry.data.slice(from))
    return lines
  }

  open(): LogLine[] {
    return [...this.#open.values()].map((open) => this.#line(open)).filter(({ text }) => text !== '')
  }

  #add(key: string, last: LogEntry, piece: string): void {
    const open = this.#open.get(key) ?? { raw: '', omitted: 0, last }
    const room = Math.max(0, longestLine - open.raw.length)
    open.raw += piece.slice(0, room)
    open.omitted += Math.max(0, piece.length - room)
    open.last = last
    this.#open.set(key, open)
  }

  #line({ raw, omitted, last: { id, hostId, hostname, stream, phase } }: OpenLine): LogLine {
    const head = phase === undefined ? '' : `${phaseMark(phase)} `
    return { id, hostId, hostname, stream, text: head + shownText(raw, omitted) }
  }
}
