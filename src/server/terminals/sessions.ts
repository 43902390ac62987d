import { mkdir } from 'node:fs/promises'
import { RsmError } from '../../core/errors.ts'
import { closeCodes } from '../../core/protocol/close-codes.ts'
import type { TerminalClosed, TerminalOpen, TerminalOutput } from '../../core/protocol/messages.ts'
import { isDistrust } from '../../core/signing.ts'
import type { Bus } from '../bus.ts'
import { type Clock, isoTime } from '../clock.ts'
import type { AgentLink } from '../engine/agent-link.ts'
import { type Keys, signatureLife } from '../keys.ts'
import type { Log } from '../log.ts'
import type { TerminalRecord } from '../store/records.ts'
import type { Store, Transaction } from '../store/store.ts'
import type { Attachment, AttachOptions, TerminalClient } from './client.ts'
import { createRecordings, type Recordings } from './recordings.ts'
import { refuseWithout, tooMany } from './refusals.ts'
import { ended, type SessionEvents, TerminalSession } from './session.ts'
import { createTokenWatch } from './token-watch.ts'

/** How long an agent may take to open a session. */
const openWait = 15_000
const sweepInterval = 500

export interface TerminalsDependencies {
  store: Store
  bus: Bus
  keys: Keys
  clock: Clock
  log: Log
  /** Where recordings are. */
  directory: string
  /** Whether sessions are recorded; true by default. */
  record?: boolean
  /** Seconds without data in either direction after which a session ends, 0 for none; 3600 by default. */
  idleLimit?: number
}

/** A session that is asked for; `check` runs in the transaction that makes it. */
export interface NewSession {
  record: Omit<TerminalRecord, 'hostname' | 'agentId' | 'recorded'>
  check(tx: Transaction): Promise<void>
}

/** Owns the terminal sessions that are open: agents on one side, recordings and clients on the other (contract §7). */
export interface Terminals {
  readonly recordings: Recordings
  /** Takes up the sessions that a former process left open. */
  recover(): Promise<void>
  /** Resolves when the host has opened it; `conflict` says why it has not. */
  open(session: NewSession): Promise<TerminalRecord>
  /** Throws `gone` for a session that has ended, and whose client has heard so. */
  expect(sessionId: string): void
  attach(sessionId: string, client: TerminalClient, options: AttachOptions): Promise<Attachment>
  /** Ends it, if it is open. */
  end(sessionId: string, reason: string): Promise<void>
  /** The record as it stands now, who reads along, and how much is recorded. */
  live(record: TerminalRecord): { record: TerminalRecord; watchers: string[]; recordingBytes: number }
  linked(link: AgentLink): Promise<void>
  unlinked(link: AgentLink): void
  opened(link: AgentLink, frameId: string, sessionId: string): Promise<void>
  output(link: AgentLink, frameId: string, output: TerminalOutput): Promise<void>
  closed(link: AgentLink, frameId: string, closed: TerminalClosed): Promise<void>
  load(): { open: number }
  /** Closes recordings and sockets; the sessions stay open for the next process. */
  stop(): Promise<void>
}

interface Opening {
  resolve(): void
  reject(error: RsmError): void
}

export function createTerminals(deps: TerminalsDependencies): Terminals {
  const { store, bus, keys, clock, log } = deps
  const recordings = createRecordings(deps.directory, log)
  const idleLimit = (deps.idleLimit ?? 3600) * 1000
  const sessions = new Map<string, TerminalSession>()
  const openings = new Map<string, Opening>()
  const links = new Map<number, AgentLink>()
  /** Ends that the store has not taken yet. */
  const unsaved = new Set<TerminalSession>()
  const ending = new Set<Promise<void>>()

  function sendOpen(link: AgentLink, record: TerminalRecord, after?: number): boolean {
    const { id: sessionId, cols, rows, runAs, shell, term, command } = record
    const linkId = link.hello?.linkId
    const payload: Omit<TerminalOpen, 'expiry' | 'signature' | 'keyId'> = {
      sessionId,
      cols,
      rows,
      ...(runAs === null ? {} : { runAs }),
      ...(shell === null ? {} : { shell }),
      ...(term === null ? {} : { term }),
      ...(command === null ? {} : { command }),
      ...(after === undefined ? {} : { after }),
      ...(linkId === undefined ? {} : { linkId }),
    }
    const expiry = isoTime(clock.now() + signatureLife)
    return link.send('TERMINAL_OPEN', keys.sign('TERMINAL_OPEN', link.agentId, payload, expiry))
  }

  const events: SessionEvents = {
    reopen: (session, link, after) => void sendOpen(link, session.record, after),
    ended(session, end) {
      const { record } = session
      const waiting = openings.get(record.id)
      if (waiting) return waiting.reject(new RsmError('conflict', end.reason ?? 'The session has ended'))
      session.record = { ...record, ...end, status: 'CLOSED', endedAt: isoTime(clock.now()) }
      // The agent that has ended it lets it go once that is on disk; any other is told to end it now.
      if (!session.hasLeftHost) session.link?.send('TERMINAL_CLOSE', { sessionId: record.id })
      const work = finish(session).finally(() => ending.delete(work))
      ending.add(work)
    },
    done: ({ record: { id } }) => void sessions.delete(id),
    watched: (session, { caller, ip }, isWatching) => {
      if (isWatching)
        bus.publish('terminal', session.record.id, { kind: 'watched', record: session.record, caller, ip })
    },
  }

  async function finish(session: TerminalSession): Promise<void> {
    await session.recording
      ?.end()
      .catch((error: unknown) => log.warn({ err: error }, 'a recording could not be ended'))
    session.record = { ...session.record, recordingBytes: session.recording?.bytes ?? 0 }
    bus.publish('terminal', session.record.id, { kind: 'ended', record: session.record })
    unsaved.add(session)
    await save(session)
  }

  async function save(session: TerminalSession): Promise<void> {
    const { record } = session
    try {
      await store.transact((tx) => tx.put('terminals', record))
    } catch (error) {
      log.warn(
        { err: error, sessionId: record.id },
        'the end of a terminal session could not be written down',
      )
      return
    }
    unsaved.delete(session)
    if (session.hasLeftHost) session.link?.send('TERMINAL_CLOSE', { sessionId: record.id })
  }

  const tokens = createTokenWatch(store, clock)

  async function sweep(): Promise<void> {
    const now = clock.monotonic()
    for (const session of sessions.values()) {
      if (openings.has(session.record.id)) continue
      if (session.end) session.forget(now)
      else {
        const end = session.overdue(now, idleLimit)
        if (end) session.finish(end)
        else if (!(await tokens.holds(session))) endForToken(session)
      }
    }
    if (store.readOnlyReason === null) for (const session of unsaved) await save(session)
  }
  let sweeping: Promise<void> | null = null
  const timer = setInterval(() => {
    sweeping ??= sweep()
      .catch((error: unknown) => log.error({ err: error }, 'terminals: sweep failed'))
      .finally(() => {
        sweeping = null
      })
  }, sweepInterval)
  timer.unref()

  const endForToken = (session: TerminalSession) =>
    session.finish(ended('the login that it hangs on has ended'), closeCodes.revoked)
  const unsubscribe = [
    bus.subscribe('tokenEnded', null, ({ tokenId }) => {
      for (const session of sessions.values()) {
        session.dismissWatchers(tokenId)
        if (session.record.tokenId === tokenId) endForToken(session)
      }
    }),
    bus.subscribe('agentRevoked', null, ({ agentId }) => {
      for (const session of sessions.values())
        if (session.record.agentId === agentId)
          session.finish(ended("the token of the host's agent was revoked"), closeCodes.revoked)
    }),
  ]

  const recordingEvents = (id: string) => ({
    written: () => sessions.get(id)?.moved(),
    failed: (error: unknown) => {
      log.error({ err: error, sessionId: id }, 'a recording could not be written')
      const why = (error as NodeJS.ErrnoException).code ?? 'unknown fault'
      sessions
        .get(id)
        ?.finish(ended(`its recording could not be written (${why}), and none goes on unrecorded`))
    },
  })

  async function discard(record: TerminalRecord): Promise<void> {
    const session = sessions.get(record.id)
    sessions.delete(record.id)
    await session?.recording?.end()
    await recordings.forget(record.id)
    await store.transact((tx) => tx.remove('terminals', record.id)).catch(() => undefined)
  }

  async function opening(session: TerminalSession, link: AgentLink): Promise<void> {
    const { record } = session
    const { id, hostname } = record
    const timeout = { timer: undefined as NodeJS.Timeout | undefined }
    const opened = new Promise<void>((resolve, reject) => openings.set(id, { resolve, reject }))
    timeout.timer = setTimeout(() => {
      const message = `${hostname} did not open a terminal within ${openWait / 1000} s`
      openings.get(id)?.reject(new RsmError('conflict', message))
      link.send('TERMINAL_CLOSE', { sessionId: id })
    }, openWait)
    try {
      if (!sendOpen(link, record)) throw lostLink(hostname)
      await opened
    } finally {
      clearTimeout(timeout.timer)
      openings.delete(id)
    }
  }

  /** The session of a frame, if it is this host's; else the agent hears why not. */
  async function find(link: AgentLink, frameId: string, id: string): Promise<TerminalSession | null> {
    const session = sessions.get(id)
    if (session && session.record.hostId === link.hostId) return session
    const record = session?.record ?? (await store.get('terminals', id))
    // It crossed the end of its session.
    if (record?.hostId === link.hostId) return null
    if (record) {
      const { agentId, hostId } = link
      bus.publish('foreignFrame', hostId, { agentId, hostId, type: 'terminal', id })
      link.send('ERROR', {
        code: 403,
        message: `terminal session ${id} is not one of this host`,
        refId: frameId,
      })
    } else link.send('ERROR', { code: 404, message: `no terminal session ${id}`, refId: frameId })
    return null
  }

  function attachable(id: string): TerminalSession {
    const session = sessions.get(id)
    if (session && !openings.has(id)) return session
    throw new RsmError('gone', `Terminal session ${id} has ended`)
  }

  return {
    recordings,

    async recover() {
      await mkdir(deps.directory, { recursive: true, mode: 0o700 })
      for (const record of await store.find('terminals', 'status', 'OPEN')) {
        const session = new TerminalSession(record, null, clock, events)
        sessions.set(record.id, session)
        if (!record.recorded) continue
        try {
          await recordings.reopen(session, recordingEvents(record.id))
        } catch (error) {
          log.error({ err: error, sessionId: record.id }, 'a recording could not be taken up')
          session.finish(ended('its recording could not be taken up after a restart of the server'))
        }
      }
    },

    async open({ record: asked, check }) {
      const host = await store.get('hosts', asked.hostId)
      const link = links.get(asked.hostId)
      const { agentId, hostname } = refuseWithout(host, link, asked.hostId)
      const refusal = tooMany(sessions.values(), asked)
      if (refusal) throw refusal
      const record: TerminalRecord = { ...asked, agentId, hostname, recorded: deps.record !== false }
      const session = new TerminalSession(record, link ?? null, clock, events)
      sessions.set(record.id, session)
      try {
        if (record.recorded) session.recording = await recordings.create(record, recordingEvents(record.id))
        await store.transact(async (tx) => {
          await check(tx)
          tx.put('terminals', record)
        })
        if (!session.link) throw lostLink(hostname)
        await opening(session, session.link)
      } catch (error) {
        await discard(record)
        throw error
      }
      return record
    },

    expect: (sessionId) => void attachable(sessionId),

    async attach(sessionId, client, options) {
      const session = attachable(sessionId)
      const { caller, ip } = client
      if (!options.watch) {
        // It hangs on the token of whoever uses it now.
        if (session.record.tokenId !== caller.tokenId && !session.end) {
          session.record = { ...session.record, tokenId: caller.tokenId }
          await store.transact((tx) => tx.put('terminals', session.record))
        }
        bus.publish('terminal', sessionId, { kind: 'attached', record: session.record, caller, ip })
      }
      return session.attach(client, options)
    },

    async end(sessionId, reason) {
      sessions.get(sessionId)?.finish(ended(reason))
      await Promise.all(ending)
    },

    live(record) {
      const session = sessions.get(record.id)
      const recordingBytes = session?.recording?.bytes ?? record.recordingBytes
      return { record: session?.record ?? record, watchers: session?.watchers ?? [], recordingBytes }
    },

    async linked(link) {
      links.set(link.hostId, link)
      const named = new Set(link.hello?.terminals?.map(({ sessionId }) => sessionId))
      for (const session of sessions.values()) {
        const { id, hostId } = session.record
        if (hostId !== link.hostId || session.end || openings.has(id)) continue
        if (named.has(id)) session.linked(link)
        else
          session.finish(ended("the host's agent has started anew, and what ran in its terminals has ended"))
      }
      for (const id of named) {
        const session = sessions.get(id)
        if (!session || session.end || session.record.hostId !== link.hostId)
          link.send('TERMINAL_CLOSE', { sessionId: id })
      }
    },

    unlinked(link) {
      if (links.get(link.hostId) !== link) return
      links.delete(link.hostId)
      for (const session of sessions.values()) {
        if (session.link !== link) continue
        session.unlinked()
        openings.get(session.record.id)?.reject(lostLink(session.record.hostname))
      }
    },

    async opened(link, frameId, sessionId) {
      const session = await find(link, frameId, sessionId)
      if (session) openings.get(sessionId)?.resolve()
    },

    async output(link, frameId, { sessionId, data, sequence }) {
      const session = sessions.get(sessionId)
      if (session?.link === link && !session.end) session.output(data, sequence)
      else await find(link, frameId, sessionId)
    },

    async closed(link, frameId, { sessionId, exitCode, signal, reason }) {
      if (reason && isDistrust(reason)) {
        const { agentId, hostId } = link
        bus.publish('distrusted', hostId, { agentId, hostId, taskId: null, message: reason })
      }
      const session = await find(link, frameId, sessionId)
      if (!session) return
      const waiting = openings.get(sessionId)
      if (waiting)
        return waiting.reject(
          new RsmError('conflict', reason ?? `${session.record.hostname} opened no terminal`),
        )
      session.hasLeftHost = true
      session.finish({ exitCode, signal, reason })
    },

    load: () => ({ open: [...sessions.values()].filter(({ end }) => end === null).length }),

    async stop() {
      clearInterval(timer)
      for (const end of unsubscribe) end()
      for (const { reject } of openings.values())
        reject(new RsmError('unavailable', 'The server is shutting down', { retryAfter: 5 }))
      await sweeping
      await Promise.all(ending)
      for (const session of sessions.values()) {
        session.suspend()
        if (!session.end) await session.recording?.end()
      }
    },
  }
}

const lostLink = (hostname: string) =>
  new RsmError('conflict', `${hostname} lost its link while it was to open a terminal; try again`)
