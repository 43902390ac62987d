import { setTimeout as delay } from 'node:timers/promises'
import { Attachment, type TerminalAttached, type TerminalEnd } from '../../client/attachment.ts'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import { reattachWindow } from '../../core/protocol/terminal-messages.ts'
import { playerKeysOf } from '../recording/player-keys.ts'
import { onDeparture } from './departure.ts'
import { Display } from './display.ts'
import { endingOf, endingOfWatch } from './ending.ts'
import { EscapeReader, shownCharacter } from './escapes.ts'
import { Keyboard } from './keyboard.ts'
import { localSize } from './size.ts'

export interface SessionOptions {
  readonly client: Client
  readonly sessionId: string
  /** Reads along only. */
  readonly watch: boolean
  /** The character that begins an escape. */
  readonly escape: string | undefined
  /** What is said only to people who watch, and not with `--quiet`. */
  readonly quiet: boolean
}

const bell = '\u0007'
/** Between the two changes of size that make a program draw its screen anew: at once it would see none. */
const redrawPause = 100
/** How long the server may take to end a session that was left while it could not be reached. */
const removeTimeout = 3_000

/** A session on this terminal, from its first output to its end; answers the exit code (contract §9). */
export async function runSession(options: SessionOptions): Promise<number> {
  const { client, sessionId, watch } = options
  const display = new Display()
  const say = (message: string) => {
    if (!options.quiet) display.say(message)
  }
  const attachment = new Attachment({
    sessionId,
    watch,
    socket: client.socket,
    attached: (attached, again) => onAttached(attached, again),
    output: (data, shown) => display.output(data, shown),
    resized: (cols, rows) => watch && tellSize(cols, rows),
    notice: ({ message }) => say(message),
    refused: (message) => display.say(message),
    cut: () => say(`connection lost, reattaching (${reattachWindow / 1000} s)...`),
    drained: () => keyboard?.resume(),
  })
  const tellSize = (cols: number, rows: number) => {
    const own = localSize()
    if (process.stdout.isTTY && (own.cols < cols || own.rows < rows))
      say(`the session is ${cols}x${rows}, this terminal only ${own.cols}x${own.rows}`)
  }
  const resize = () => {
    const { cols, rows } = localSize()
    attachment.resize(cols, rows)
  }
  /** What stands on a full screen was overwritten: the program that drew it does so again when its size changes. */
  const redraw = () => {
    const { cols, rows } = localSize()
    if (!display.isFullScreen || rows < 2) return
    attachment.resize(cols, rows - 1)
    setTimeout(resize, redrawPause)
  }
  const onAttached = ({ cols, rows, omitted, watchers }: TerminalAttached, again: boolean) => {
    if (again) say('reattached')
    if (omitted > 0) display.say(`${omitted} characters of output are not kept any more and are missing here`)
    if (watch) tellSize(cols, rows)
    else if (!again && watchers.length > 0) say(`${watchers.join(', ')} reads along`)
    if (again && !watch) redraw()
  }
  const escapes = new EscapeReader(options.escape)
  const typed = (text: string) => {
    for (const each of escapes.read(text)) {
      if ('send' in each) type(each.send)
      else if (each.escape === 'leave') attachment.leave()
      else if (each.escape === 'suspend') keyboard?.suspend()
      else for (const line of helpOf(options)) display.say(line)
    }
  }
  const type = (text: string) => {
    if (watch) {
      if (playerKeysOf(text).includes('quit')) attachment.leave()
      return
    }
    const taken = attachment.type(text)
    if (taken === 'full') keyboard?.pause()
    else if (taken === 'refused') process.stderr.write(bell)
  }
  const keyboard = process.stdin.isTTY
    ? new Keyboard({
        typed,
        gone: () => attachment.leave(),
        suspending: () => display.leave(),
        resumed() {
          display.enter()
          resize()
          redraw()
        },
      })
    : null

  const departure = onDeparture(() => attachment.leave())
  const giveBack = () => display.leave()
  process.on('exit', giveBack)
  process.on('uncaughtExceptionMonitor', giveBack)
  if (!watch) {
    resize()
    process.on('SIGWINCH', resize)
  }
  keyboard?.start()
  let end: TerminalEnd
  try {
    end = await attachment.run()
  } catch (error) {
    if (!watch) await remove(options)
    throw error
  } finally {
    departure.stop()
    process.off('SIGWINCH', resize)
    process.off('exit', giveBack)
    process.off('uncaughtExceptionMonitor', giveBack)
    keyboard?.stop()
    display.end()
  }
  // A shell that ended by itself has left the terminal as it wants it; elsewhere a mouse or a full screen may be left on.
  if (watch || end.kind !== 'closed' || end.closed.reason !== null) display.leave()
  if (end.kind === 'left' && !end.told && !watch) await remove(options)
  const { exit, message } = watch ? endingOfWatch(end) : endingOf(end)
  // Whoever ended it from outside knows; a closed stdout is told by the exit code alone (contract §9).
  if (departure.exit !== undefined) return departure.exit
  if (message !== null) display.say(message)
  return exit
}

/** Ends a session that could not be told so over its own connection. */
async function remove({ client, sessionId }: SessionOptions): Promise<void> {
  const given = delay(removeTimeout, undefined, { ref: false })
  const removed = client.terminals.remove(sessionId).catch((error: unknown) => {
    // The server ends it by itself when nobody comes back.
    if (!(error instanceof RsmError)) throw error
  })
  await Promise.race([removed, given])
}

function helpOf({ escape, watch }: SessionOptions): string[] {
  if (escape === undefined) return []
  const key = shownCharacter(escape)
  if (watch) return [`q, Ctrl-C or ${key}. ends watching`]
  return [
    'at the beginning of a line:',
    `  ${key}.   leave: end the session, and what runs in it`,
    `  ${key}^Z  suspend rsm; fg takes it up again`,
    `  ${key}?   this help`,
    `  ${key}${key}   the character ${key} itself`,
  ]
}
