import { setTimeout as delay } from 'node:timers/promises'
import type { RsmError } from '../core/errors.ts'
import { endUpgrade } from '../disk/upgrade-traces.ts'
import { createFirstUser } from './access/passwords.ts'
import { type Base, openBase, urlOf } from './app/base.ts'
import { createListeners, type Listeners } from './app/listeners.ts'
import { refuseAdvertised, refuseOpenHttp, type ServerOptions } from './app/options.ts'
import { startWork, type Work } from './app/work.ts'
import { fillHostSets } from './services/tasks.ts'
import { openFileStore } from './storage/files/open.ts'
import type { OpenData } from './storage/ports/data.ts'
import { placeOf } from './storage/postgres/place.ts'

export interface RunningServer {
  url: string
  port: number
  /** Pin of the current certificate's key, `sha256//` and base64; null without TLS. */
  readonly fingerprint: string | null
  /** Whether that certificate is self-signed, so that clients must pin it. */
  readonly selfSigned: boolean
  /** Handles a request without a connection. Rejects if the server is not open. */
  readonly inject: Listeners['inject']
  /** Reloads the certificate from its files; keeps the old one and logs an error if the new one is invalid. */
  reloadCertificate(): Promise<void>
  /** The first user, if this start created one with a generated password. */
  createdAdmin: { username: string; password: string } | null
  /** Resolves when the server has stopped, for any reason. */
  closed: Promise<void>
  /** Why the server stopped on its own; null while it runs, and after `close`. */
  readonly fault: RsmError | null
  /** Stops in order; resolves within 10 s. */
  close(): Promise<void>
}

/** Milliseconds for all shutdown steps that need PostgreSQL. */
const patienceAtStop = 4_000

type FirstUser = Awaited<ReturnType<typeof createFirstUser>>

interface Parts {
  base: Base
  work: Work
  listeners: Listeners
}

/** Starts the server: lock, keys, store, engine, then listeners. Recovers running tasks before the first request. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  refuseOpenHttp(options)
  refuseAdvertised(options)
  const base = await openBase(options, await engineOf(options))
  const work = await startWork(base, options).catch(async (error: unknown) => {
    await base.close()
    throw error
  })
  const parts = { base, work, listeners: createListeners(base, work, options) }
  try {
    await checkKept(parts, options)
    await work.context.engine.recover()
    await work.context.terminals.recover()
    await fillHostSets(work.context)
    const port = await parts.listeners.open()
    work.context.handedOut.listensOn(port)
    // Only once the port is bound: a failed start must not leave a user whose password was never shown.
    const first = await welcomeFirstUser(parts, options)
    await recordStart(parts, options, port)
    // Before the first answer, because nothing acknowledged from here on may be rolled back.
    await endUpgrade(base.path)
    parts.listeners.accept({ madeFirstUser: first !== null })
    work.deliveries.start()
    work.planner.start()
    const { storeId } = base.data.store
    base.log.info({ host: options.host, port, dataDir: base.path, storeId }, 'server started')
    return running(parts, options, port, first)
  } catch (error) {
    await shut(parts)
    throw error
  }
}

/** Loads PostgreSQL support only if needed, because it costs start time. */
async function engineOf(options: ServerOptions): Promise<OpenData> {
  const place = placeOf(options)
  if (place === null) return openFileStore
  const { openPostgres } = await import('./storage/postgres/open.ts')
  return openPostgres(place)
}

/** Reports entries missing from the audit log since the last stop, and keys that this start replaced. */
async function checkKept({ base, work }: Parts, { newKeys }: ServerOptions): Promise<void> {
  await work.events.checkHead()
  const { replacedKeys } = base.data
  if (replacedKeys === null) {
    if (newKeys === true) base.log.info({}, 'the keys match the store: --new-keys replaced nothing')
    return
  }
  const { agents, credentials, tasks, webhooks } = replacedKeys
  base.log.error(
    { ...replacedKeys },
    `new keys: ${agents.length} agents must be enrolled again, credentials of ${credentials.length} hosts, secret parameters of ${tasks.length} tasks and secrets of ${webhooks.length} webhooks are gone`,
  )
  await work.events.record('keys.replace', null, 'SUCCESS', { ...replacedKeys })
}

async function welcomeFirstUser({ base, work }: Parts, { adminPassword }: ServerOptions): Promise<FirstUser> {
  const { data, clock, log } = base
  const admin = await createFirstUser(data.store, work.context.passwords, clock, adminPassword)
  await data.markUsed()
  if (admin) {
    const user = { type: 'user', id: null, name: admin.username }
    await work.events.record('user.create', user, 'SUCCESS', { role: 'ADMIN', first: true })
  } else if (adminPassword !== undefined)
    log.warn(
      {},
      'RSM_ADMIN_PASSWORD ignored: the store already has users; remove it from the environment of the server',
    )
  return admin
}

const serverObject = ({ data }: Base) => ({ type: 'server', id: data.store.storeId, name: null })

async function recordStart(
  { base, work }: Parts,
  { host, serverName }: ServerOptions,
  port: number,
): Promise<void> {
  const { events } = work
  await events.record('server.start', serverObject(base), 'SUCCESS', {
    pid: process.pid,
    host,
    port,
    ...(serverName === undefined ? {} : { serverName }),
  })
  await events.sayHead()
}

async function shut({ base, work, listeners }: Parts): Promise<void> {
  const { events, context } = work
  const late = performance.now() + patienceAtStop
  const tried = (step: Promise<void>) => endedBefore(late, base, step)
  await listeners.refuse()
  work.housekeeping.stop()
  const sending = work.deliveries.stop()
  // Before the engine stops, so that it still accepts the tasks that the planner starts.
  await tried(work.planner.stop())
  // Engine and links before the rest, so that other servers take over its tasks at once and no host counts as
  // unreachable.
  const stepping = context.engine.stop()
  await tried(work.membership.leave())
  listeners.closeLinks()
  await listeners.close()
  work.fleetEvents.close()
  await tried(stepping)
  await tried(sending)
  await tried(context.terminals.stop())
  // All recorded events have happened by now. The disk comes last, so that nothing acknowledged is lost.
  events.stop()
  await tried(work.refusals.close())
  await tried(events.record('server.stop', serverObject(base), 'SUCCESS', { pid: process.pid }))
  await tried(work.outbox.close())
  await tried(events.sayHead())
  await tried(base.close())
}

/** Resolves when the step has ended or failed; on a shared store, which may be unreachable, also at the deadline. */
async function endedBefore(late: number, { data, log }: Base, step: Promise<void>): Promise<void> {
  const ended = step.catch((error: unknown) => log.warn({ err: error }, 'a shutdown step failed'))
  if (data.shared === null) return ended
  const given = new AbortController()
  const left = Math.max(late - performance.now(), 100)
  await Promise.race([ended, delay(left, undefined, { signal: given.signal }).catch(() => undefined)])
  given.abort()
}

function running(parts: Parts, options: ServerOptions, port: number, first: FirstUser): RunningServer {
  const { base, work, listeners } = parts
  let closing: Promise<void> | undefined
  let fault: RsmError | null = null
  let markClosed: () => void = () => undefined
  const closed = new Promise<void>((resolve) => {
    markClosed = resolve
  })
  const server: RunningServer = {
    url: urlOf(base, options.host, port),
    port,
    get fingerprint() {
      return listeners.serving.fingerprint
    },
    get selfSigned() {
      return listeners.serving.selfSigned
    },
    inject: (request) => listeners.inject(request),
    reloadCertificate: () => listeners.serving.reload(),
    createdAdmin: first?.generated ? { username: first.username, password: first.password } : null,
    closed,
    get fault() {
      return fault
    },
    close() {
      closing ??= shut(parts).then(() => {
        base.log.info({}, 'server stopped')
        markClosed()
      })
      return closing
    },
  }
  void work.membership.fenced.then((why) => {
    fault = why
    return server.close()
  })
  return server
}
