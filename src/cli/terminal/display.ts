import { sanitizeLine } from '../text/sanitize.ts'
import { localSize } from './term.ts'

const escape = '\u001b'

export class Display {
  readonly #modes = new TerminalModes()
  /** Null if stdout is a terminal. */
  readonly #endings = process.stdout.isTTY ? null : new LineEndings()
  #isAtLineStart = true
  /** Whether the terminal is released, temporarily or permanently. */
  #isLeft = false

  get isFullScreen(): boolean {
    return process.stdout.isTTY && !this.#isLeft && this.#modes.isAlternate
  }

  /** `shown` is called once it is written. */
  output(data: string, shown: () => void): void {
    this.#modes.see(data)
    const text = this.#endings === null ? data : this.#endings.write(data)
    if (data !== '') this.#isAtLineStart = data.endsWith('\n')
    if (text === '') shown()
    else process.stdout.write(text, () => shown())
  }

  /** Shows a message of rsm. On a full screen it replaces the last line until the next redraw. */
  say(message: string): void {
    const line = `rsm: ${sanitizeLine(message)}`
    if (!process.stderr.isTTY) {
      process.stderr.write(`${line}\n`)
      return
    }
    if (this.isFullScreen) {
      const { cols, rows } = localSize()
      const last = `${escape}[${rows};1H${escape}[0;7m${line.slice(0, cols)}${escape}[0m${escape}[K`
      process.stderr.write(`${escape}7${last}${escape}8`)
      return
    }
    process.stderr.write(`${this.#isAtLineStart ? '' : '\r\n'}${line}\r\n`)
    this.#isAtLineStart = true
  }

  /** Restores the terminal for a shell; `enter` restores the session's state. */
  leave(): void {
    if (this.#isLeft) return
    this.#isLeft = true
    this.#toTerminal(this.#modes.undo())
  }

  enter(): void {
    if (!this.#isLeft) return
    this.#isLeft = false
    this.#toTerminal(this.#modes.redo())
  }

  end(): void {
    const rest = this.#endings?.end() ?? ''
    if (rest !== '') process.stdout.write(rest)
  }

  #toTerminal(text: string): void {
    if (text !== '' && process.stdout.isTTY) process.stdout.write(text)
  }
}

/** Removes the carriage returns that a terminal adds before line feeds (ONLCR), across chunks. */
export class LineEndings {
  #pending = ''

  write(chunk: string): string {
    const text = this.#pending + chunk
    // A final carriage return may be half of a line end.
    this.#pending = text.endsWith('\r') ? '\r' : ''
    return text.slice(0, text.length - this.#pending.length).replaceAll('\r\n', '\n')
  }

  end(): string {
    const rest = this.#pending
    this.#pending = ''
    return rest
  }
}

/**
 * Private modes (DECSET) that disturb a shell if left on, and the state a shell expects: cursor keys, wrap,
 * mouse, cursor, alternate screen, focus, bracketed paste, synchronized output.
 */
const expectedModes = new Map<number, boolean>([
  ...[1, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026].map(
    (mode): [number, boolean] => [mode, false],
  ),
  [7, true],
  [25, true],
])
const alternateScreens = ['?47', '?1047', '?1049']

/**
 * DECSET and DECRST, key encodings of xterm and kitty, keypad, RIS; without a control character in the
 * source.
 */
const sequences = new RegExp(
  `${escape}(?:\\[(?:\\?(?<modes>[\\d;]+)(?<set>[hl])|>4(?:;(?<keys>\\d*))?m|(?<kitty>[<>])(?<number>\\d*)u)|(?<pad>[=>])|(?<reset>c))`,
  'g',
)
const unfinished = new RegExp(`${escape}(?:\\[[?<>]?[\\d;]*)?$`)
/** Characters up to which a split sequence is joined; far more than programs send. */
const longestTorn = 1024
/** Key encodings kept; terminals also drop the oldest above a limit. */
const mostEncodings = 16

/** Tracks modes changed by a session's programs, to undo them. Bounded, because output comes from a host. */
export class TerminalModes {
  /** Changes in order: the sequence that made each, and the one that undoes it. */
  readonly #changes = new Map<string, { readonly redo: string; readonly undo: string }>()
  /** Names of the active encodings among the changes, newest last. */
  #encodings: string[] = []
  #pushed = 0
  #rest = ''

  get isAlternate(): boolean {
    return alternateScreens.some((mode) => this.#changes.has(mode))
  }

  see(output: string): void {
    if (this.#rest === '' && !output.includes(escape)) return
    const text = this.#rest + output
    for (const { groups = {} } of text.matchAll(sequences)) {
      const { modes, set, keys, kitty, number = '', pad, reset } = groups
      if (modes !== undefined) for (const mode of modes.split(';')) this.#mode(Number(mode), set === 'h')
      else if (kitty === '>') this.#push(Number(number))
      else if (kitty === '<') this.#pop(Number(number || '1'))
      else if (pad !== undefined) this.#note('pad', pad === '=', `${escape}=`, `${escape}>`)
      else if (reset !== undefined) this.#forget()
      else this.#keys(Number(keys))
    }
    this.#rest = unfinished.exec(text.slice(-longestTorn))?.[0] ?? ''
  }

  /** Sequence that restores the terminal for a shell; empty if nothing was changed. */
  undo(): string {
    const steps = [...this.#changes.values()].reverse().map(({ undo }) => undo)
    return steps.length === 0 ? '' : `${steps.join('')}${escape}[0m`
  }

  redo(): string {
    return [...this.#changes.values()].map(({ redo }) => redo).join('')
  }

  #mode(mode: number, isSet: boolean): void {
    const expected = expectedModes.get(mode)
    if (expected === undefined) return
    const [on, off] = [`${escape}[?${mode}h`, `${escape}[?${mode}l`]
    this.#note(`?${mode}`, isSet !== expected, isSet ? on : off, expected ? on : off)
  }

  /** Numbers from a host may be of any length, so they are clamped and rewritten. */
  #keys(level: number): void {
    this.#note('keys', level !== 0, `${escape}[>4;${Math.min(level, 9)}m`, `${escape}[>4m`)
  }

  #push(flags: number): void {
    const name = `encoding${this.#pushed++}`
    this.#note(name, true, `${escape}[>${Math.min(flags, 999)}u`, `${escape}[<u`)
    this.#encodings.push(name)
    if (this.#encodings.length > mostEncodings) this.#changes.delete(this.#encodings.shift() ?? '')
  }

  #pop(count: number): void {
    for (let left = count; left > 0 && this.#encodings.length > 0; left--)
      this.#changes.delete(this.#encodings.pop() ?? '')
  }

  #forget(): void {
    this.#changes.clear()
    this.#encodings = []
  }

  #note(what: string, isChanged: boolean, redo: string, undo: string): void {
    this.#changes.delete(what)
    if (isChanged) this.#changes.set(what, { redo, undo })
  }
}
