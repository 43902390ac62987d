import type { Log } from '../../disk/log.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { Member, Ownership } from '../storage/ports/cluster.ts'
import type { Store } from '../storage/ports/store.ts'
import type { LiveTerminal } from './terminal.ts'

interface SavingDependencies {
  store: Store
  facts: LocalFacts
  member: Member
  ownership: Pick<Ownership, 'owner' | 'release'>
  log: Log
}

/** Brings what becomes of terminals to the store, again and again until it takes it. */
export class Saving {
  readonly #deps: SavingDependencies
  readonly #unsaved = new Set<LiveTerminal>()
  readonly #ending = new Map<string, Promise<void>>()
  /** Those that have ended and whose record does not say so yet. */
  readonly #closing = new Map<string, LiveTerminal>()

  constructor(deps: SavingDependencies) {
    this.#deps = deps
  }

  /** Its record has changed; it goes out with the next sweep. */
  changed(terminal: LiveTerminal): void {
    this.#unsaved.add(terminal)
  }

  /** It is another server's from here on. */
  forget(terminal: LiveTerminal): void {
    this.#unsaved.delete(terminal)
  }

  /** It has ended, as its record says. */
  ended(terminal: LiveTerminal): void {
    const { id } = terminal.record
    this.#ending.set(
      id,
      this.#finish(terminal).finally(() => this.#ending.delete(id)),
    )
    this.#closing.set(id, terminal)
  }

  /** One that has ended, until the store has that. */
  closing(id: string): LiveTerminal | undefined {
    return this.#closing.get(id)
  }

  /** Resolves when the end of a terminal is on disk, or refused. */
  async settled(id: string): Promise<void> {
    await this.#ending.get(id)
  }

  async sweep(): Promise<void> {
    for (const terminal of this.#unsaved)
      if (!this.#ending.has(terminal.record.id)) await this.#save(terminal)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#ending.values())
    for (const terminal of this.#unsaved) await this.#save(terminal)
  }

  async #finish(terminal: LiveTerminal): Promise<void> {
    const { facts, log } = this.#deps
    const { recording } = terminal
    if (await this.#isElsewhere(terminal)) return
    await recording
      ?.end()
      .catch((error: unknown) => log.warn({ err: error }, 'a recording could not be ended'))
    terminal.record = { ...terminal.record, recordingBytes: recording?.bytes ?? 0 }
    facts.publish('terminal', { kind: 'ended', record: terminal.record })
    this.#unsaved.add(terminal)
    await this.#save(terminal)
  }

  async #save(terminal: LiveTerminal): Promise<void> {
    const { store, log } = this.#deps
    const { record } = terminal
    if (await this.#isElsewhere(terminal)) return
    try {
      await store.transact(async (tx) => {
        // One that ended elsewhere while this server was away, and that nobody owns any more, stays as it ended.
        if ((await tx.get('terminals', record.id))?.status !== 'CLOSED') tx.put('terminals', record)
      })
    } catch (error) {
      log.warn({ err: error, sessionId: record.id }, 'a terminal session could not be written down')
      return
    }
    if (terminal.record === record) this.#unsaved.delete(terminal)
    // Its end may have come while an earlier change was written: the agent keeps the exit code until that is stored.
    if (record.status !== 'CLOSED') return
    await this.#closed(record.id)
    if (terminal.hasLeftHost) terminal.host.link?.send('TERMINAL_CLOSE', { sessionId: record.id })
  }

  /** Whether another server goes on with it, as this one was away for too long: nothing of it is to be saved here. */
  async #isElsewhere({ record: { id } }: LiveTerminal): Promise<boolean> {
    const { ownership, member, log } = this.#deps
    // Who can not be asked can not be saved to either, and is tried again.
    const owner = await ownership.owner(id).catch(() => null)
    if (owner === null || owner.epoch === member.epoch) return false
    log.info({ sessionId: id, server: owner.name }, 'a terminal session continues on another server')
    for (const terminal of this.#unsaved) if (terminal.record.id === id) this.#unsaved.delete(terminal)
    this.#closing.delete(id)
    return true
  }

  async #closed(id: string): Promise<void> {
    this.#closing.delete(id)
    const { ownership, member, log } = this.#deps
    await ownership
      .release(member, [id])
      .catch((error: unknown) => log.warn({ err: error, sessionId: id }, 'a session could not be let go'))
  }
}
