import { EventEmitter } from 'node:events'
import blessed from 'blessed'
import { Keyboard } from '../../terminal/keyboard.ts'
import { Painter } from './paint.ts'
import type { Frame, Key, Mouse, Screen, ScreenListener, Size } from './screen.ts'

const escape = '\u001b'
/** Disables autowrap, so that a differing character width does not break the last column. */
const taken = `${escape}[?7l${escape}[?25l`
/** Clears the screen for terminals without an alternate screen, such as the Linux console. */
const givenBack = `${escape}[0m${escape}[2J${escape}[H${escape}[?25h${escape}[?7h`
const secondScreen = '?1049'
/** Milliseconds to wait for the rest of a split key; a lone Escape waits, too. */
const tornFor = 50

interface PressedKey {
  readonly full?: string
  readonly ctrl?: boolean
  readonly meta?: boolean
}
interface MouseReport {
  readonly action: string
  readonly button?: string
  readonly x: number
  readonly y: number
}

/** blessed parses keys and mouse. Without terminfo, whose newer entries it does not understand. */
function openProgram(input: EventEmitter) {
  // Its types allow neither an input that is not a stream nor omitting terminfo.
  const options: unknown = { input, output: process.stdout, tput: false }
  return blessed.program(options as Parameters<typeof blessed.program>[0])
}

function keyOf(character: string | undefined, { full = '', ctrl, meta }: PressedKey): Key {
  if (full === 'linefeed') return { name: 'enter', text: null }
  if (character === undefined || ctrl === true || meta === true || /^\p{Cc}$/u.test(character))
    return { name: full, text: null }
  return { name: character, text: character }
}

const actions: Readonly<Record<string, Mouse['action']>> = {
  mousedown: 'press',
  wheelup: 'wheelup',
  wheeldown: 'wheeldown',
}

/** The terminal of this process. Only this folder uses blessed, so that it can be replaced. */
export class BlessedScreen implements Screen {
  readonly #input = new EventEmitter()
  readonly #program = openProgram(this.#input)
  readonly #pieces = new InputPieces()
  readonly #painter: Painter
  readonly #listener: ScreenListener
  readonly #keyboard: Keyboard
  #torn: NodeJS.Timeout | undefined
  #isTaken = false
  #hasMouse = false

  constructor(listener: ScreenListener, isColoured: boolean) {
    this.#listener = listener
    this.#painter = new Painter(isColoured)
    this.#keyboard = new Keyboard({
      typed: (text) => this.#typed(text),
      gone: () => listener.gone(),
      suspending: () => this.#giveBack(),
      resumed: () => this.#take(),
    })
    this.#program.on('keypress', (character: string | undefined, key: PressedKey) => {
      // blessed reports this key again as `enter`.
      if (key.full !== 'return') listener.key(keyOf(character, key))
    })
    this.#program.on('mouse', (report: MouseReport) => this.#moused(report))
    this.#program.on('resize', () => {
      if (!this.#isTaken) return
      this.#painter.forget()
      listener.resized()
    })
  }

  get size(): Size {
    return { cols: process.stdout.columns || 80, rows: process.stdout.rows || 24 }
  }

  get isReady(): boolean {
    return this.#isTaken && !process.stdout.writableNeedDrain
  }

  draw(frame: Frame): void {
    if (!this.#isTaken) return
    if (frame.mouse !== this.#hasMouse) this.#setMouse(frame.mouse)
    const text = this.#painter.paint(frame, this.size)
    if (text !== '') process.stdout.write(text)
  }

  enter(): void {
    process.on('exit', this.#giveBack)
    process.on('uncaughtExceptionMonitor', this.#giveBack)
    this.#keyboard.start()
    this.#take()
  }

  leave(): void {
    this.#giveBack()
    this.#keyboard.stop()
    clearTimeout(this.#torn)
    process.off('exit', this.#giveBack)
    process.off('uncaughtExceptionMonitor', this.#giveBack)
  }

  suspend(): void {
    this.#keyboard.suspend()
  }

  redraw(): void {
    this.#painter.forget()
    this.#listener.resized()
  }

  close(): void {
    if (this.#isTaken) this.leave()
    this.#program.destroy()
  }

  #take(): void {
    // After a stop and continue from outside it is still taken, in an unknown state.
    if (!this.#isTaken) this.#program.setMode(secondScreen)
    this.#isTaken = true
    this.#hasMouse = false
    process.stdout.write(taken)
    this.redraw()
  }

  readonly #giveBack = (): void => {
    if (!this.#isTaken) return
    this.#setMouse(false)
    this.#isTaken = false
    process.stdout.write(givenBack)
    this.#program.resetMode(secondScreen)
  }

  #setMouse(isOn: boolean): void {
    if (isOn === this.#hasMouse) return
    this.#hasMouse = isOn
    this.#program.setMouse({ vt200Mouse: isOn, sgrMouse: isOn }, isOn)
  }

  #typed(text: string): void {
    clearTimeout(this.#torn)
    this.#pass(this.#pieces.push(text))
    if (this.#pieces.isTorn) this.#torn = setTimeout(() => this.#pass(this.#pieces.flush()), tornFor)
  }

  #pass(pieces: readonly string[]): void {
    for (const piece of pieces)
      if (piece > '~' && piece !== '\u007f') this.#listener.key({ name: piece, text: piece })
      else this.#input.emit('data', Buffer.from(piece))
  }

  #moused({ action, button, x, y }: MouseReport): void {
    const known = actions[action]
    if (known === undefined || (known === 'press' && button !== 'left')) return
    this.#listener.mouse({ action: known, x, y })
  }
}

/** A whole key or mouse report: SS3, CSI (X10: three characters after `M`), or Escape and a character. */
const sequence = new RegExp(
  `^${escape}(?:${escape}?O[\\d;]*[A-Za-z]|${escape}?\\[M[\\s\\S]{3}|${escape}?\\[(?!M)\\[?[<?]?[\\d;]*[A-Za-z~^$@]|[^${escape}[O])`,
)
const begun = new RegExp(`^${escape}(?:${escape}?(?:O[\\d;]*|\\[M[\\s\\S]{0,2}|\\[\\[?[<?]?[\\d;]*)?)$`)
/** Longest report of a terminal. */
const longest = 64

/**
 * Splits input into keys and mouse reports: blessed reads only the first report of a read, and mistakes a
 * sequence split between reads for keys.
 */
export class InputPieces {
  #rest = ''

  /** Whether an incomplete piece is pending, as after a pressed Escape. */
  get isTorn(): boolean {
    return this.#rest !== ''
  }

  push(text: string): string[] {
    return this.#cut(this.#rest + text, false)
  }

  /** Takes the pending piece as it is. */
  flush(): string[] {
    return this.#cut(this.#rest, true)
  }

  #cut(text: string, isWhole: boolean): string[] {
    const pieces: string[] = []
    let rest = text
    while (rest !== '') {
      if (!isWhole && rest.length < longest && begun.test(rest)) break
      const [piece = String.fromCodePoint(rest.codePointAt(0) ?? 0)] = sequence.exec(rest) ?? []
      pieces.push(piece)
      rest = rest.slice(piece.length)
    }
    this.#rest = rest
    return pieces
  }
}
