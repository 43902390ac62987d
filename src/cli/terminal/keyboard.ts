import { spawnSync } from 'node:child_process'

interface KeyboardOptions {
  readonly typed: (text: string) => void
  readonly gone: () => void
  /** Before this process stops, and after it was taken up again. */
  readonly suspending: () => void
  readonly resumed: () => void
}

/**
 * All keys of the terminal, in raw mode until `stop`. However this process ends, except by SIGKILL, the terminal is left as
 * it was found.
 */
export class Keyboard {
  readonly #options: KeyboardOptions
  #isRaw = false

  constructor(options: KeyboardOptions) {
    this.#options = options
  }

  start(): void {
    const { stdin } = process
    this.#takeOver()
    // Its decoder keeps what is no whole character yet.
    stdin.setEncoding('utf8')
    stdin.on('data', this.#options.typed)
    stdin.on('end', this.#options.gone)
    stdin.on('error', this.#options.gone)
    // One that was stopped before lets nothing through by itself.
    stdin.ref()
    stdin.resume()
    process.on('exit', this.#restore)
    // Before the fault is printed, which would run down the screen like stairs.
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

  /** Stops this process and what it shares its job with, as Ctrl-Z does elsewhere; returns when it is taken up again. */
  readonly suspend = (): void => {
    this.#options.suspending()
    this.#restore()
    this.#ignoreStops()
    // Where nobody could take it up again the system does not stop it, and it goes on at once.
    process.kill(0, 'SIGTSTP')
    this.#heedStops()
    this.#continued()
  }

  readonly #continued = (): void => {
    // Whoever had the terminal meanwhile may have set it anew behind our back.
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
    // Node leaves the output cooked: a line feed would become two characters, and full screens fall apart. Where the
    // output goes elsewhere, as into tee, it has lines of its own, and comes back to a terminal that has to make them.
    if (process.stdout.isTTY) spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] })
  }

  readonly #restore = (): void => {
    if (!this.#isRaw) return
    this.#isRaw = false
    process.stdin.setRawMode(false)
  }
}

export type PlayerKey = 'pause' | 'step' | 'quit'

/** The keys in what a terminal sent; its answers to questions in the output begin with an escape, and are none. */
export function playerKeysOf(text: string): PlayerKey[] {
  if (text.startsWith('\u001b')) return []
  return Array.from(text).flatMap((key): PlayerKey[] => {
    if (key === ' ') return ['pause']
    if (key === '.') return ['step']
    return key === 'q' || key === '\u0003' ? ['quit'] : []
  })
}
