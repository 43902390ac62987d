import type { LocalFacts } from '../local-facts.ts'
import type { Log } from '../log.ts'
import type { Store } from '../seams/store.ts'
import type { TerminalSession } from './session.ts'

/** Brings what becomes of sessions to the store, again and again until it takes it. */
export class Saving {
  readonly #deps: { store: Store; facts: LocalFacts; log: Log }
  readonly #unsaved = new Set<TerminalSession>()
  readonly #ending = new Map<string, Promise<void>>()
  /** Those that have ended and whose record does not say so yet. */
  readonly #closing = new Map<string, TerminalSession>()

  constructor(deps: { store: Store; facts: LocalFacts; log: Log }) {
    this.#deps = deps
  }

  /** Its record has changed; it goes out with the next sweep. */
  changed(session: TerminalSession): void {
    this.#unsaved.add(session)
  }

  /** It is another server's from here on. */
  forget(session: TerminalSession): void {
    this.#unsaved.delete(session)
  }

  /** It has ended, as its record says. */
  ended(session: TerminalSession): void {
    const { id } = session.record
    this.#ending.set(
      id,
      this.#finish(session).finally(() => this.#ending.delete(id)),
    )
    this.#closing.set(id, session)
  }

  /** One that has ended, until the store has that. */
  closing(id: string): TerminalSession | undefined {
    return this.#closing.get(id)
  }

  /** Resolves when the end of a session is on disk, or refused. */
  async settled(id: string): Promise<void> {
    await this.#ending.get(id)
  }

  async sweep(): Promise<void> {
    for (const session of this.#unsaved) if (!this.#ending.has(session.record.id)) await this.#save(session)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#ending.values())
    for (const session of this.#unsaved) await this.#save(session)
  }

  async #finish(session: TerminalSession): Promise<void> {
    const { facts, log } = this.#deps
    const { recording } = session
    await recording
      ?.end()
      .catch((error: unknown) => log.warn({ err: error }, 'a recording could not be ended'))
    session.record = { ...session.record, recordingBytes: recording?.bytes ?? 0 }
    facts.publish('terminal', { kind: 'ended', record: session.record })
    this.#unsaved.add(session)
    await this.#save(session)
  }

  async #save(session: TerminalSession): Promise<void> {
    const { store, log } = this.#deps
    const { record } = session
    try {
      await store.transact((tx) => tx.put('terminals', record))
    } catch (error) {
      log.warn({ err: error, sessionId: record.id }, 'a terminal session could not be written down')
      return
    }
    if (session.record === record) this.#unsaved.delete(session)
    if (record.status === 'CLOSED') this.#closing.delete(record.id)
    if (session.hasLeftHost) session.host.link?.send('TERMINAL_CLOSE', { sessionId: record.id })
  }
}
