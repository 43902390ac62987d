import type { Stream } from '../../../core/protocol/http/logs.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import type { LogLine } from '../log/lines.ts'
import type { LogReader } from '../log/reader.ts'
import { type LogRow, Viewport } from '../log/viewport.ts'
import type { Key, Span, Style } from '../screen/screen.ts'
import { fit } from './fit.ts'
import { stepOf } from './list.ts'

const prefixStyles: readonly Style[] = (['cyan', 'green', 'yellow', 'blue', 'magenta'] as const).map(
  (fg) => ({ fg }),
)
/** Two columns: a mark for stderr, which is told apart without colours, too. */
const markWidth = 2
const widestName = 20
/** So near to an end of what is read the next page is asked for, in rows of the pane. */
const margin = 3
const sideStep = 8

/** What went on in the pane that is said in the last row. */
export type Said = (text: string, isBad?: boolean) => void

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** The log beside the hosts: which part of it is shown, and what is looked for in it. */
export class LogPane {
  readonly viewport = new Viewport()
  readonly #reader: LogReader
  readonly #say: Said
  #sought: { readonly text: string; readonly pattern: RegExp } | null = null
  #found: number | null = null
  #hostId: number | null = null
  #stream: Stream | null = null
  /** In columns; 0 where the log is one host's. */
  #longestName = 0
  /** The beginning is to be shown as soon as it has come. */
  #isToBegin = false

  constructor(reader: LogReader, say: Said) {
    this.#reader = reader
    this.#say = say
  }

  get stream(): Stream | null {
    return this.#stream
  }

  get sought(): string | null {
    return this.#sought?.text ?? null
  }

  /** Null for all hosts, whose names are `longest` columns wide at most. */
  select(hostId: number | null, longest: number): void {
    this.#hostId = hostId
    this.#longestName = hostId === null ? longest : 0
    this.#isToBegin = false
    this.#found = null
    this.viewport.follow()
    this.#reader.select({ hostId, stream: this.#stream })
  }

  cycleStream(): void {
    const order: readonly (Stream | null)[] = [null, 'stdout', 'stderr']
    this.#stream = order[(order.indexOf(this.#stream) + 1) % order.length] ?? null
    this.#found = null
    this.viewport.follow()
    this.#reader.select({ hostId: this.#hostId, stream: this.#stream })
  }

  toggleWrap(): void {
    this.viewport.hold(this.#reader.window)
    this.viewport.wrap = !this.viewport.wrap
    this.viewport.column = 0
  }

  follow(): void {
    this.#found = null
    this.#isToBegin = false
    this.viewport.follow()
    if (this.#reader.isBehind) this.#reader.want('tail')
  }

  /** False of a key that is not the pane's. */
  key({ name }: Key): boolean {
    if (name === 'end' || name === 'G' || name === 'F') this.follow()
    else if (name === 'home' || name === 'g') this.#isToBegin = true
    else if ((name === 'left' || name === 'right') && !this.viewport.wrap)
      this.viewport.column = Math.max(0, this.viewport.column + (name === 'left' ? -sideStep : sideStep))
    else {
      const step = stepOf(name, this.viewport.height)
      if (step === undefined) return false
      this.scroll(step)
    }
    return true
  }

  scroll(by: number): void {
    this.viewport.scroll(this.#reader.window, by, !this.#reader.isBehind)
  }

  hold(): void {
    this.viewport.hold(this.#reader.window)
  }

  /** Shows the next line with this text: downwards from what is shown, and where there is none, upwards. */
  async search(text: string): Promise<void> {
    if (text === '') {
      this.clearSearch()
      return
    }
    this.#sought = { text, pattern: new RegExp(escaped(text), 'giu') }
    const from = this.viewport.rows(this.#reader.window)[0]?.number ?? this.#reader.window.first
    if ((await this.#find('down', from, true)) !== null) return
    if ((await this.#find('up', from, false)) === null) this.#say(`not found: ${text}`, true)
  }

  async searchNext(direction: 'up' | 'down'): Promise<void> {
    if (this.#sought === null) {
      this.#say('nothing is looked for yet: / begins a search')
      return
    }
    const found = await this.#find(direction, this.#here(direction), false)
    const other = direction === 'down' ? 'none below; N looks upwards' : 'none above; n looks downwards'
    if (found === null) this.#say(`${other}: ${this.#sought.text}`, true)
  }

  async nextError(direction: 'up' | 'down'): Promise<void> {
    if (this.#stream === 'stdout') {
      this.#say('stderr is left out: s shows it')
      return
    }
    const matches = (line: LogLine) => line.stream === 'stderr'
    const from = this.#here(direction)
    const found = await this.#reader.find({ matches, direction, from, stream: 'stderr' })
    if (typeof found === 'number') this.#show(found)
    else if (found === null) this.#say(direction === 'down' ? 'no stderr below' : 'no stderr above', true)
  }

  /** False where there was nothing to clear. */
  clearSearch(): boolean {
    if (this.#reader.searching !== null) {
      this.#reader.stopFinding()
      this.#say('search stopped')
      return true
    }
    const had = this.#sought !== null
    this.#sought = null
    this.#found = null
    return had
  }

  /** Whether the pane shows as much as there is for it. */
  get isFilled(): boolean {
    const { window, isLoaded } = this.#reader
    return isLoaded && (window.previous === 0 || this.viewport.rows(window).length >= this.viewport.height)
  }

  /** The rows of a pane of this size; asks for what is about to be needed. */
  rows(width: number, height: number): Span[][] {
    const nameWidth = Math.min(this.#longestName, widestName, Math.floor(width / 3))
    const before = markWidth + (nameWidth > 0 ? nameWidth + 1 : 0)
    this.viewport.size(width, height, () => width - before)
    this.#begin()
    const rows = this.viewport.rows(this.#reader.window)
    this.#ask(rows)
    return rows.map((row) => this.#spans(row, nameWidth))
  }

  /** The same as bare text, for a terminal to select from. */
  plainRows(width: number, height: number): Span[][] {
    const isAll = this.#longestName > 0
    const nameOf = (line: LogLine) => (isAll ? `${sanitizeLine(line.hostname)}: ` : '')
    this.viewport.size(width, height, (line) => width - widthOf(nameOf(line)))
    this.#begin()
    const rows = this.viewport.rows(this.#reader.window)
    this.#ask(rows)
    return rows.map(({ line, part, text }) => [{ text: part === 0 ? nameOf(line) + text : text }])
  }

  #begin(): void {
    const { window, isLoaded } = this.#reader
    if (!this.#isToBegin || !isLoaded) return
    if (window.previous > 0) this.#reader.want('head')
    else {
      this.#isToBegin = false
      this.viewport.goTo(window.first)
    }
  }

  /** From where the next one is looked for. */
  #here(direction: 'up' | 'down'): number {
    const { window } = this.#reader
    const rows = this.viewport.rows(window)
    if (this.#found !== null && rows.some(({ number }) => number === this.#found)) return this.#found
    const row = direction === 'down' ? rows[0] : rows.at(-1)
    if (row === undefined) return window.first
    return direction === 'down' ? row.number - 1 : row.number + 1
  }

  async #find(
    direction: 'up' | 'down',
    from: number,
    isInclusive: boolean,
  ): Promise<number | null | undefined> {
    const { pattern } = this.#sought ?? {}
    if (pattern === undefined) return undefined
    const matches = ({ text }: LogLine) => {
      pattern.lastIndex = 0
      return pattern.test(text)
    }
    const found = await this.#reader.find({ matches, direction, from, isInclusive })
    if (typeof found === 'number') this.#show(found)
    return found
  }

  #show(number: number): void {
    this.#found = number
    this.viewport.show(this.#reader.window, number)
  }

  #ask(rows: readonly LogRow[]): void {
    const { window } = this.#reader
    const near = margin * this.viewport.height
    const top = rows[0]?.number ?? window.first
    const bottom = rows.at(-1)?.number ?? window.end
    if (this.viewport.isFollowing && this.#reader.isTooFarBehind) this.#reader.want('tail')
    else if (this.viewport.isFollowing || bottom + near >= window.end) this.#reader.want('newer')
    if (!this.viewport.isFollowing && top - near <= window.first) this.#reader.want('older')
    else if (rows.length < this.viewport.height) this.#reader.want('older')
  }

  #spans({ number, part, line, text }: LogRow, nameWidth: number): Span[] {
    const isError = line.stream === 'stderr'
    const mark: Style = { ...(isError ? { fg: 'red' } : {}), inverse: number === this.#found }
    const spans: Span[] = [{ text: isError ? '!' : ' ', style: mark }, { text: ' ' }]
    if (nameWidth > 0) {
      const name = part === 0 ? sanitizeLine(line.hostname) : ''
      const style = prefixStyles[line.hostId % prefixStyles.length]
      spans.push({ text: `${fit(name, nameWidth)} `, style })
    }
    return [...spans, ...this.#highlighted(text, isError ? { fg: 'red' } : {}, number === this.#found)]
  }

  #highlighted(text: string, style: Style, isFound: boolean): Span[] {
    const { pattern } = this.#sought ?? {}
    if (pattern === undefined) return [{ text, style }]
    const spans: Span[] = []
    let from = 0
    // It goes on where the last test of a line has left it.
    pattern.lastIndex = 0
    for (const { 0: match, index } of text.matchAll(pattern)) {
      if (match === '') continue
      spans.push({ text: text.slice(from, index), style })
      spans.push({ text: match, style: { inverse: true, bold: isFound } })
      from = index + match.length
    }
    return [...spans, { text: text.slice(from), style }].filter((span) => widthOf(span.text) > 0)
  }
}
