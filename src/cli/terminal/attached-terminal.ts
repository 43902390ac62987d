import { constants } from 'node:os'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import { Burst } from '../../core/rates.ts'
import { reattachWindow, type TerminalNotice } from '../../core/terminals/terminal.ts'
import { Attachment, type TerminalAttached, type TerminalEnd } from '../../net/attachment.ts'
import { onDeparture } from './departure.ts'
import { Display } from './display.ts'
import { EscapeReader, shownCharacter } from './escapes.ts'
import { Keyboard, playerKeysOf } from './keyboard.ts'
import { localSize } from './term.ts'
import { WatcherNotices } from './watcher-notices.ts'

/** Exit code of a session that was lost or left (contract §9). */
const lostExit = 255

const signals: Readonly<Record<string, number>> = constants.signals

/** Exit code and message of an ended session; no message if its shell exited. */
function endingOf(end: TerminalEnd): { readonly exit: number; readonly message: string | null } {
  switch (end.kind) {
    case 'left':
      return { exit: lostExit, message: 'left; the session is ended' }
    case 'lost':
      return { exit: lostExit, message: `session lost: ${end.error.message}` }
    case 'closed': {
      const { exitCode, signal, reason } = end.closed
      if (reason !== null) return { exit: lostExit, message: `the session was ended: ${reason}` }
      if (signal !== null) return { exit: 128 + (signals[signal] ?? 127), message: `ended by ${signal}` }
      return { exit: (exitCode ?? lostExit) & 0xff, message: null }
    }
  }
}

function endingOfWatch(end: TerminalEnd): { readonly exit: number; readonly message: string | null } {
  if (end.kind === 'left') return { exit: 0, message: null }
  const { exit, message } = endingOf(end)
  if (end.kind === 'lost') return { exit, message }
  return { exit: 0, message: message ?? `the session has ended with exit code ${exit}` }
}

export interface AttachedTerminalOptions {
  readonly client: Client
  readonly sessionId: string
  readonly watch: boolean
  readonly escape: string | undefined
  /** Hides messages that are only for people (`--quiet`). */
  readonly quiet: boolean
}

const bell = '\u0007'
/** Milliseconds between two resizes that make a program redraw; without a pause it would notice none. */
const redrawPause = 100
/** Milliseconds for the server to end a terminal that was left while disconnected. */
const removeTimeout = 3_000

export class AttachedTerminal {
  readonly #options: AttachedTerminalOptions
  readonly #display = new Display()
  readonly #watchers = new WatcherNotices()
  readonly #refusals = new Burst()
  readonly #escapes: EscapeReader
  readonly #attachment: Attachment
  readonly #keyboard: Keyboard | null

  constructor(options: AttachedTerminalOptions) {
    const { client, sessionId, watch } = options
    this.#options = options
    this.#escapes = new EscapeReader(options.escape)
    this.#attachment = new Attachment({
      sessionId,
      watch,
      open: client.session(sessionId, watch),
      attached: (attached, again) => this.#attached(attached, again),
      output: (data, shown) => this.#display.output(data, shown),
      resized: (cols, rows) => this.#compareSize(cols, rows),
      notice: (notice) => this.#noticed(notice),
      refused: (message) => {
        if (this.#refusals.begins(performance.now(), message)) this.#display.say(message)
      },
      cut: () => this.#note(`connection lost, reattaching (${reattachWindow / 1000} s)...`),
      drained: () => this.#keyboard?.resume(),
    })
    const keys = {
      typed: (text: string) => this.#typed(text),
      gone: () => this.#attachment.leave(),
      suspending: () => this.#display.leave(),
      resumed: () => this.#resumed(),
    }
    this.#keyboard = process.stdin.isTTY ? new Keyboard(keys) : null
  }

  /** Resolves with the exit code when the session ends (contract §9). Rejects if it cannot be entered. */
  async run(): Promise<number> {
    const { watch } = this.#options
    const departure = onDeparture(() => this.#attachment.leave())
    process.on('exit', this.#giveBack)
    process.on('uncaughtExceptionMonitor', this.#giveBack)
    process.on('SIGWINCH', this.#resize)
    this.#resize()
    this.#keyboard?.start()
    let end: TerminalEnd | undefined
    try {
      end = await this.#attachment.run()
    } finally {
      departure.stop()
      process.off('exit', this.#giveBack)
      process.off('uncaughtExceptionMonitor', this.#giveBack)
      process.off('SIGWINCH', this.#resize)
      this.#keyboard?.stop()
      this.#display.end()
      const isUnreported = end === undefined || (end.kind === 'left' && !end.isReported)
      if (!watch && isUnreported) await this.#remove()
    }
    // Even an exited shell may have left mouse or alternate screen modes on, e.g. if it was killed.
    this.#giveBack()
    const { exit, message } = watch ? endingOfWatch(end) : endingOf(end)
    // No message if a signal ended it; a closed stdout is reported by the exit code alone (contract §9).
    if (departure.exit !== undefined) return departure.exit
    if (message !== null) this.#display.say(message)
    return exit
  }

  #attached({ cols, rows, omitted, watchers }: TerminalAttached, again: boolean): void {
    if (again) this.#note('reattached')
    else this.#noteLeaveKeys()
    if (omitted > 0)
      this.#display.say(`${omitted} characters of output are no longer kept and are missing here`)
    const news = this.#options.watch ? null : this.#watchers.attached(watchers)
    if (news !== null) this.#note(news)
    this.#compareSize(cols, rows)
    if (again) this.#redraw()
  }

  #noteLeaveKeys(): void {
    const { escape, watch } = this.#options
    if (this.#keyboard === null || !process.stdout.isTTY || escape === undefined) return
    const key = shownCharacter(escape)
    this.#note(watch ? 'q leaves' : `to leave: ${key}. at the beginning of a line; ${key}? shows more`)
  }

  #noticed({ kind, message }: TerminalNotice): void {
    this.#note(message)
    this.#watchers.noticed(kind)
    // Resizes did not reach the program while its host was disconnected.
    if (kind === 'host-back') this.#redraw()
  }

  #typed(text: string): void {
    for (const each of this.#escapes.read(text)) {
      if ('send' in each) this.#send(each.send)
      else if (each.escape === 'leave') this.#attachment.leave()
      else if (each.escape === 'suspend') this.#keyboard?.suspend()
      else for (const line of helpOf(this.#options, this.#display.isFullScreen)) this.#display.say(line)
    }
  }

  #send(text: string): void {
    if (this.#options.watch) {
      if (playerKeysOf(text).includes('quit')) this.#attachment.leave()
      return
    }
    const taken = this.#attachment.type(text)
    if (taken === 'full') this.#keyboard?.pause()
    else if (taken !== 'taken') process.stderr.write(bell)
  }

  #resumed(): void {
    this.#display.enter()
    this.#resize()
    this.#redraw()
  }

  /** Makes a full-screen program redraw by changing its size, because its screen was overwritten. */
  #redraw(): void {
    const { cols, rows } = localSize()
    if (!this.#display.isFullScreen || this.#options.watch || rows < 2) return
    this.#attachment.resize(cols, rows - 1)
    setTimeout(this.#resize, redrawPause)
  }

  readonly #resize = (): void => {
    const { cols, rows } = localSize()
    if (!this.#options.watch) this.#attachment.resize(cols, rows)
  }

  readonly #giveBack = (): void => this.#display.leave()

  /** A watcher sees the size of another terminal. */
  #compareSize(cols: number, rows: number): void {
    const own = localSize()
    if (this.#options.watch && process.stdout.isTTY && (own.cols < cols || own.rows < rows))
      this.#note(`the session is ${cols}x${rows}, this terminal only ${own.cols}x${own.rows}`)
  }

  #note(message: string): void {
    if (!this.#options.quiet) this.#display.say(message)
  }

  /** Ends a terminal over REST when its own connection is gone. */
  async #remove(): Promise<void> {
    const { client, sessionId } = this.#options
    const given = AbortSignal.timeout(removeTimeout)
    await client
      .until(given)
      .terminals.remove(sessionId)
      .catch((error: unknown) => {
        // The server ends it anyway if no client returns.
        if (!(error instanceof RsmError) && !given.aborted) throw error
      })
  }
}

/** A full screen has room for one line only. */
function helpOf({ escape, watch }: AttachedTerminalOptions, isFullScreen: boolean): string[] {
  if (escape === undefined) return []
  const key = shownCharacter(escape)
  if (watch) return [`q, Ctrl-C or ${key}. ends watching`]
  if (isFullScreen) return [`${key}. leaves, ${key}^Z suspends, ${key}${key} is one ${key}`]
  const keys = [
    ['.', 'leave: end the session and its programs'],
    ['^Z', 'suspend rsm; fg resumes it'],
    ['?', 'this help'],
    [key, `the character ${key} itself`],
  ] as const
  return [
    'at the beginning of a line:',
    ...keys.map(([typed, does]) => `  ${key}${typed.padEnd(Math.max(2, key.length))}  ${does}`),
  ]
}
