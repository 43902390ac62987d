import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Clock } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Hearing } from '../../ports/cluster.ts'
import type { Ask, Database } from '../connection/database.ts'
import { openSession } from '../connection/session.ts'

/** Of the form of what is sent: a server that does not know a newer one looks at everything. */
const version = '1'
const name = 'rsm'
/** Bytes of one notification; PostgreSQL takes less than 8,000. */
const mostBytes = 7_900
/** Milliseconds. LISTEN says nothing where its connection is dead, so each server listens for itself. */
const echoEvery = 5_000
const echoPatience = 3_000
const answerPatience = 8_000
const echoKind = 'e'

/** Lines that all servers of a store say to one another: each is a word for its kind, a blank, and text. They may be lost. */
export interface Channel {
  /** Resolves when they are on their way. Rejects with `unavailable`: they are lost. */
  send(lines: readonly string[]): Promise<void>
  /** Hears the text of what other servers say of a kind. */
  hear(kind: string, listener: (text: string) => void): void
  /** Hears that some may have been lost. Answers the way to unsubscribe. */
  missed(listener: () => void): () => void
  /** Tells those listeners. */
  miss(): void
  hearing(): Hearing
  close(): Promise<void>
}

interface Parts {
  database: Database
  clock: Pick<Clock, 'monotonic'>
  log: Log
}

/** Lines together in as few notifications as take them. */
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

/** Notifications on a connection of its own: in a transaction that writes, NOTIFY would make all others wait for its commit. */
export async function openChannel({ database, clock, log }: Parts): Promise<Channel> {
  const sender = randomBytes(6).toString('base64url')
  const heard = new EventEmitter().setMaxListeners(0)
  let isFirst = true
  let echoes = 0
  /** The echo that is waited for, monotonic. */
  let asked: { text: string; at: number } | null = null
  /** The last one that came back, and when. */
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

  /** False where this server makes nothing of it. */
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
