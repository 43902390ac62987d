import { spawnSync } from 'node:child_process'

interface KeyboardOptions {
  readonly typed: (text: string) => void
  readonly gone: () => void
  /** Called before this process stops, and after it continues. */
  readonly suspending: () => void
  readonly resumed: () => void
}

/** Keys in raw mode until `stop`. The terminal is restored however the process ends, except on SIGKILL. */
export class Keyboard {
  readonly #options: KeyboardOptions
  #isRaw = false

  constructor(options: KeyboardOptions) {
    this.#options = options
  }

  start(): void {
    const { stdin } = process
    this.#takeOver()
    // The decoder buffers incomplete characters.
    stdin.setEncoding('utf8')
    stdin.on('data', this.#options.typed)
    stdin.on('end', this.#options.gone)
    stdin.on('error', this.#options.gone)
    // A stdin that was paused before does not resume on its own.
    stdin.ref()
    stdin.resume()
    process.on('exit', this.#restore)
    // Before the error is printed, whose lines would be staggered in raw mode.
    process.on('uncaughtExceptionMonitor', this.#restore)
    this.#heedStops()
  }

  stop(): void {
    const { stdin } = process
    stdin.off('data', this.#options.typed)
    stdin.off('end', this.#options.gone)
    stdin.off('error', this.#options.gone)
    process.off('exit', this.#restore)
    process.off('uncaughtExceptionMonitor', this.#restore)
    this.#ignoreStops()
    this.#restore()
    stdin.pause()
    stdin.unref()
  }

  pause(): void {
    process.stdin.pause()
  }

  resume(): void {
    process.stdin.resume()
  }

  /** Stops the process group, as Ctrl-Z does; returns when it continues. */
  readonly suspend = (): void => {
    this.#options.suspending()
    this.#restore()
    this.#ignoreStops()
    // The system ignores the stop for an orphaned process group, so execution continues at once.
    process.kill(0, 'SIGTSTP')
    this.#heedStops()
    this.#continued()
  }

  readonly #continued = (): void => {
    // The shell may have changed the terminal's settings meanwhile.
    this.#restore()
    this.#takeOver()
    this.#options.resumed()
  }

  #heedStops(): void {
    process.on('SIGTSTP', this.suspend)
    process.on('SIGCONT', this.#continued)
  }

  #ignoreStops(): void {
    process.off('SIGTSTP', this.suspend)
    process.off('SIGCONT', this.#continued)
  }

  #takeOver(): void {
    process.stdin.setRawMode(true)
    this.#isRaw = true
    // Node leaves output processing on: line feeds would become CR LF and break full screens. If stdout goes
    // elsewhere, as into tee, output that returns to the terminal needs it.
    if (process.stdout.isTTY) spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] })
  }

  readonly #restore = (): void => {
    if (!this.#isRaw) return
    this.#isRaw = false
    process.stdin.setRawMode(false)
  }
}

export type PlayerKey = 'pause' | 'step' | 'quit'

/** Keys in terminal input; the terminal's answers to queries start with an escape and are ignored. */
export function playerKeysOf(text: string): PlayerKey[] {
  if (text.startsWith('\u001b')) return []
  return Array.from(text).flatMap((key): PlayerKey[] => {
    if (key === ' ') return ['pause']
    if (key === '.') return ['step']
    return key === 'q' || key === '\u0003' ? ['quit'] : []
  })
}
