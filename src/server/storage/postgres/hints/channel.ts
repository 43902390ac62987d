import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Clock } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Hearing } from '../../ports/cluster.ts'
import type { Ask, Database } from '../connection/database.ts'
import { openSession } from '../connection/session.ts'

/** Version of the format: on a newer one, a server refreshes everything. */
const version = '1'
const name = 'rsm'
/** Bytes per notification; PostgreSQL requires less than 8,000. */
const mostBytes = 7_900
/** Milliseconds between echoes. LISTEN reports no error on a dead connection, so each server notifies itself. */
const echoEvery = 5_000
const echoPatience = 3_000
const answerPatience = 8_000
const echoKind = 'e'

/** Broadcasts lines among the servers of a store: a kind, a blank and text. Lines may be lost. */
export interface Channel {
  /** Resolves when the lines were sent. Rejects with `unavailable` if they were lost. */
  send(lines: readonly string[]): Promise<void>
  /** Calls `listener` with the text of each line of this kind from other servers. */
  hear(kind: string, listener: (text: string) => void): void
  /** Calls `listener` when lines may have been lost. Returns a function to unsubscribe. */
  missed(listener: () => void): () => void
  /** Calls the listeners of `missed`. */
  miss(): void
  hearing(): Hearing
  close(): Promise<void>
}

interface Parts {
  database: Database
  clock: Pick<Clock, 'monotonic'>
  log: Log
}

/** Packs lines into as few notifications as possible. */
function payloads(sender: string, lines: readonly string[]): string[] {
  const head = `${version} ${sender}`
  const made: string[] = []
  let text = head
  let bytes = Buffer.byteLength(head)
  for (const line of lines) {
    const more = Buffer.byteLength(line) + 1
    if (bytes + more > mostBytes) {
      made.push(text)
      text = head
      bytes = Buffer.byteLength(head)
    }
    text += `\n${line}`
    bytes += more
  }
  return text === head ? made : [...made, text]
}

const notify = {
  name: 'hints.notify',
  text: `select pg_notify('${name}', payload) from unnest($1::text[]) with ordinality p(payload, position) order by position`,
}

/** Uses a dedicated connection, because NOTIFY in a writing transaction makes all others wait for its commit. */
export async function openChannel({ database, clock, log }: Parts): Promise<Channel> {
  const sender = randomBytes(6).toString('base64url')
  const heard = new EventEmitter().setMaxListeners(0)
  let isFirst = true
  let echoes = 0
  /** Pending echo, in monotonic milliseconds. */
  let asked: { text: string; at: number } | null = null
  /** Last echo that came back, in monotonic milliseconds. */
  let last: { lag: number; at: number } | null = null

  const miss = () => void heard.emit('missed')

  function readEcho(text: string): void {
    if (asked?.text !== text) return
    const at = clock.monotonic()
    last = { lag: at - asked.at, at }
    asked = null
  }

  function read(payload: string): void {
    const [head = '', ...lines] = payload.split('\n')
    const [itsVersion, from] = head.split(' ')
    if (from === sender) {
      for (const line of lines) if (line.startsWith(`${echoKind} `)) readEcho(line.slice(2))
      return
    }
    if (itsVersion !== version || !lines.map(readLine).every(Boolean)) miss()
  }

  /** False for an unknown kind, or if a listener fails. */
  function readLine(line: string): boolean {
    const kind = line.slice(0, line.indexOf(' '))
    try {
      return kind === echoKind || heard.emit(`of ${kind}`, line.slice(kind.length + 1))
    } catch (error) {
      log.warn({ err: error, kind }, 'a hint of another server could not be read')
      return false
    }
  }

  async function begin(ask: Ask, client: pg.Client): Promise<void> {
    client.on('notification', ({ payload = '' }) => read(payload))
    await ask(`listen ${name}`)
    asked = null
    if (!isFirst) miss()
    isFirst = false
  }

  const session = await openSession({ database, clock, log, patience: answerPatience, begin })

  async function send(lines: readonly string[]): Promise<void> {
    const all = payloads(sender, lines)
    if (all.length > 0) await session.ask(notify, [all])
  }

  function echo(): void {
    const own = { text: String(++echoes), at: clock.monotonic() }
    asked = own
    send([`${echoKind} ${own.text}`]).catch(() => undefined)
    setTimeout(() => {
      if (asked !== own) return
      if (database.fault === null) log.warn({}, 'this server does not hear its own hints; listening again')
      asked = null
      session.drop()
    }, echoPatience).unref()
  }
  echo()
  const timer = setInterval(echo, echoEvery).unref()

  return {
    send,
    hear: (kind, listener) => void heard.on(`of ${kind}`, listener),
    missed(listener) {
      heard.on('missed', listener)
      return () => void heard.off('missed', listener)
    },
    miss,
    hearing() {
      const ago = last === null ? Number.POSITIVE_INFINITY : clock.monotonic() - last.at
      const heard = last !== null && ago < 3 * echoEvery ? { lag: last.lag, ago } : null
      return { isListening: session.age() > 0, heard }
    },
    async close() {
      clearInterval(timer)
      await session.close()
    },
  }
}
