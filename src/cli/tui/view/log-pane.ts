import type { Stream } from '../../../core/tasks/task.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import { FoldedLog, titleId } from '../log/folded.ts'
import type { LogLine } from '../log/lines.ts'
import type { LogReader } from '../log/reader.ts'
import type { Find } from '../log/search.ts'
import { type LogRow, type NumberedLines, Viewport } from '../log/viewport.ts'
import { messageOf } from '../room.ts'
import type { Key, Span, Style } from '../screen/screen.ts'
import { fit } from './drawing.ts'
import { stepOf } from './list.ts'

const widestName = 20
/** Panes before the end of the loaded part at which the next page is read. */
const margin = 3
const sideStep = 8
/** Characters of output that are compared at most. */
const mostFolded = 4 * 1024 * 1024
/** Two columns: a mark that distinguishes stderr without colours, too. */
const markWidth = 2

const prefixStyles: readonly Style[] = (['cyan', 'green', 'yellow', 'blue', 'magenta'] as const).map(
  (fg) => ({ fg }),
)

export type Said = (text: string, isBad?: boolean) => void

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** The log beside the hosts: its visible part, and search. */
export class LogPane {
  readonly viewport = new Viewport()
  readonly #reader: LogReader
  readonly #say: Said
  #sought: { readonly text: string; readonly pattern: RegExp } | null = null
  #found: number | null = null
  #hostId: number | null = null
  #stream: Stream | null = null
  /** In columns; 0 for the log of one host. */
  #longestName = 0
  /** Show the beginning once it is loaded. */
  #isToBegin = false
  #folded: FoldedLog | null = null

  constructor(reader: LogReader, say: Said) {
    this.#reader = reader
    this.#say = say
  }

  get isFolded(): boolean {
    return this.#folded !== null
  }

  get #lines(): NumberedLines {
    return this.#folded ?? this.#reader.window
  }

  /** Toggles folding equal output of all hosts. `hosts`: all of them, including those without output. */
  async fold(hosts: readonly string[]): Promise<void> {
    if (this.#unfold()) return
    this.#say('reading the whole log...')
    const entries = await this.#reader.readAll(mostFolded).catch((error: unknown) => {
      this.#say(messageOf(error), true)
      return undefined
    })
    if (entries === undefined) return
    if (entries === null) {
      this.#say('too much output to fold here: rsm logs -b', true)
      return
    }
    const written = new Set(entries.map(({ hostname }) => hostname))
    this.#folded = new FoldedLog(
      entries,
      hosts.filter((hostname) => !written.has(hostname)),
    )
    this.#found = null
    this.viewport.goTo(0)
    this.#say('equal output folded, as of now; b shows the log again')
  }

  #unfold(): boolean {
    if (this.#folded === null) return false
    this.#folded = null
    this.#found = null
    this.viewport.follow()
    return true
  }

  get stream(): Stream | null {
    return this.#stream
  }

  get sought(): string | null {
    return this.#sought?.text ?? null
  }

  /** Null for all hosts; `longest` is the largest width of their names. */
  select(hostId: number | null, longest: number): void {
    this.#folded = null
    this.#hostId = hostId
    this.#longestName = hostId === null ? longest : 0
    this.#isToBegin = false
    this.#found = null
    this.viewport.follow()
    this.#reader.select({ hostId, stream: this.#stream })
  }

  cycleStream(): void {
    const order: readonly (Stream | null)[] = [null, 'stdout', 'stderr']
    this.#folded = null
    this.#stream = order[(order.indexOf(this.#stream) + 1) % order.length] ?? null
    this.#found = null
    this.viewport.follow()
    this.#reader.select({ hostId: this.#hostId, stream: this.#stream })
  }

  toggleWrap(): void {
    this.viewport.hold(this.#lines)
    this.viewport.wrap = !this.viewport.wrap
    this.viewport.column = 0
  }

  follow(): void {
    this.#found = null
    this.#isToBegin = false
    this.viewport.follow()
    if (!this.isFolded && this.#reader.isBehind) this.#reader.want('tail')
  }

  /** Returns false for keys that are not the pane's. */
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
    this.viewport.scroll(this.#lines, by, this.isFolded || !this.#reader.isBehind)
  }

  hold(): void {
    this.viewport.hold(this.#lines)
  }

  /** Shows the next line with this text: downwards from the visible part, or else upwards. */
  async search(text: string): Promise<void> {
    if (text === '') {
      this.clearSearch()
      return
    }
    this.#sought = { text, pattern: new RegExp(escaped(text), 'giu') }
    const from = this.viewport.rows(this.#lines)[0]?.number ?? this.#lines.first
    if ((await this.#findText('down', from, true)) !== null) return
    if ((await this.#findText('up', from, false)) === null) this.#say(`not found: ${text}`, true)
  }

  async searchNext(direction: 'up' | 'down'): Promise<void> {
    if (this.#sought === null) {
      this.#say('no search yet: / starts one')
      return
    }
    const found = await this.#findText(direction, this.#here(direction), false)
    const other = direction === 'down' ? 'none below; N searches upwards' : 'none above; n searches downwards'
    if (found === null) this.#say(`${other}: ${this.#sought.text}`, true)
  }

  async nextError(direction: 'up' | 'down'): Promise<void> {
    if (this.#stream === 'stdout') {
      this.#say('stderr is hidden: s shows it')
      return
    }
    const matches = (line: LogLine) => line.stream === 'stderr'
    const found = await this.#find({ matches, direction, from: this.#here(direction), stream: 'stderr' })
    if (found === null) this.#say(direction === 'down' ? 'no stderr below' : 'no stderr above', true)
  }

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

  /** Whether the pane is filled as far as there is output. */
  get isFilled(): boolean {
    const { window, isLoaded } = this.#reader
    if (this.isFolded) return true
    return isLoaded && (window.previous === 0 || this.viewport.rows(window).length >= this.viewport.height)
  }

  /** Rows for a pane of this size; requests pages that are needed soon. */
  rows(width: number, height: number): Span[][] {
    const nameWidth = this.isFolded ? 0 : Math.min(this.#longestName, widestName, Math.floor(width / 3))
    const before = markWidth + (nameWidth > 0 ? nameWidth + 1 : 0)
    this.viewport.size(width, height, () => width - before)
    this.#begin()
    const rows = this.viewport.rows(this.#lines)
    this.#ask(rows)
    const pattern = this.#sought?.pattern
    return rows.map((row) => logSpans(row, { nameWidth, pattern, isFound: row.number === this.#found }))
  }

  /** The same as plain text, for selecting in the terminal. */
  plainRows(width: number, height: number): Span[][] {
    const isAll = this.#longestName > 0 && !this.isFolded
    const nameOf = (line: LogLine) => (isAll ? `${sanitizeLine(line.hostname)}: ` : '')
    this.viewport.size(width, height, (line) => width - widthOf(nameOf(line)))
    this.#begin()
    const rows = this.viewport.rows(this.#lines)
    this.#ask(rows)
    return rows.map(({ line, part, text }) => [{ text: part === 0 ? nameOf(line) + text : text }])
  }

  #begin(): void {
    const { window, isLoaded } = this.#reader
    if (!this.#isToBegin || !isLoaded) return
    if (!this.isFolded && window.previous > 0) this.#reader.want('head')
    else {
      this.#isToBegin = false
      this.viewport.goTo(this.#lines.first)
    }
  }

  /** Start of the next search. */
  #here(direction: 'up' | 'down'): number {
    const rows = this.viewport.rows(this.#lines)
    if (this.#found !== null && rows.some(({ number }) => number === this.#found)) return this.#found
    const row = direction === 'down' ? rows[0] : rows.at(-1)
    if (row === undefined) return this.#lines.first
    return direction === 'down' ? row.number - 1 : row.number + 1
  }

  #findText(direction: Find['direction'], from: number, isInclusive: boolean) {
    const { pattern } = this.#sought ?? {}
    if (pattern === undefined) return undefined
    const matches = ({ text }: LogLine) => {
      pattern.lastIndex = 0
      return pattern.test(text)
    }
    return this.#find({ matches, direction, from, isInclusive })
  }

  /** Finds and shows a line: its number; null if none, undefined if stopped. */
  async #find(find: Find): Promise<number | null | undefined> {
    const found = await (this.#folded ?? this.#reader).find(find)
    if (typeof found === 'number') {
      this.#found = found
      this.viewport.show(this.#lines, found)
    }
    return found
  }

  #ask(rows: readonly LogRow[]): void {
    if (this.isFolded) return
    const { window } = this.#reader
    const near = margin * this.viewport.height
    const top = rows[0]?.number ?? window.first
    const bottom = rows.at(-1)?.number ?? window.end
    if (this.viewport.isFollowing && this.#reader.isTooFarBehind) this.#reader.want('tail')
    else if (this.viewport.isFollowing || bottom + near >= window.end) this.#reader.want('newer')
    if (!this.viewport.isFollowing && top - near <= window.first) this.#reader.want('older')
    else if (rows.length < this.viewport.height) this.#reader.want('older')
  }
}

interface RowStyle {
  readonly nameWidth: number
  readonly pattern: RegExp | undefined
  readonly isFound: boolean
}

function logSpans({ part, line, text }: LogRow, { nameWidth, pattern, isFound }: RowStyle): Span[] {
  if (line.hostId === titleId) return [{ text, style: { bold: true, fg: 'cyan' } }]
  const isError = line.stream === 'stderr'
  const mark: Style = { ...(isError ? { fg: 'red' } : {}), inverse: isFound }
  const spans: Span[] = [{ text: isError ? '!' : ' ', style: mark }, { text: ' ' }]
  if (nameWidth > 0) {
    const name = part === 0 ? sanitizeLine(line.hostname) : ''
    spans.push({ text: `${fit(name, nameWidth)} `, style: prefixStyles[line.hostId % prefixStyles.length] })
  }
  return [...spans, ...highlighted(text, pattern, isError ? { fg: 'red' } : {}, isFound)]
}

function highlighted(text: string, pattern: RegExp | undefined, style: Style, isFound: boolean): Span[] {
  if (pattern === undefined) return [{ text, style }]
  const spans: Span[] = []
  let from = 0
  // `matchAll` starts at `lastIndex`, which an earlier test may have moved.
  pattern.lastIndex = 0
  for (const { 0: match, index } of text.matchAll(pattern)) {
    if (match === '') continue
    spans.push({ text: text.slice(from, index), style })
    spans.push({ text: match, style: { inverse: true, bold: isFound } })
    from = index + match.length
  }
  return [...spans, { text: text.slice(from), style }].filter((span) => widthOf(span.text) > 0)
}
