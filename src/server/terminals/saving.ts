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

/** Writes changes of terminals to the store, retrying until they are stored. */
export class Saving {
  readonly #deps: SavingDependencies
  readonly #unsaved = new Set<LiveTerminal>()
  readonly #ending = new Map<string, Promise<void>>()
  /** Terminals that ended, but not yet in the store. */
  readonly #closing = new Map<string, LiveTerminal>()

  constructor(deps: SavingDependencies) {
    this.#deps = deps
  }

  changed(terminal: LiveTerminal): void {
    this.#unsaved.add(terminal)
  }

  forget(terminal: LiveTerminal): void {
    this.#unsaved.delete(terminal)
  }

  ended(terminal: LiveTerminal): void {
    const { id } = terminal.record
    this.#ending.set(
      id,
      this.#finish(terminal).finally(() => this.#ending.delete(id)),
    )
    this.#closing.set(id, terminal)
  }

  closing(id: string): LiveTerminal | undefined {
    return this.#closing.get(id)
  }

  /** Resolves when the end of a terminal is durable, or its write failed. */
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
        // Keep an end stored by another server while this one was disconnected.
        if ((await tx.get('terminals', record.id))?.status !== 'CLOSED') tx.put('terminals', record)
      })
    } catch (error) {
      log.warn({ err: error, sessionId: record.id }, 'a terminal session could not be stored')
      return
    }
    if (terminal.record === record) this.#unsaved.delete(terminal)
    // Its end may have come while an earlier change was written: the agent keeps the exit code until that is stored.
    if (record.status !== 'CLOSED') return
    await this.#closed(record.id)
    if (terminal.hasLeftHost) terminal.host.link?.send('TERMINAL_CLOSE', { sessionId: record.id })
  }

  /** Whether another server took the session over; then nothing is saved here. */
  async #isElsewhere({ record: { id } }: LiveTerminal): Promise<boolean> {
    const { ownership, member, log } = this.#deps
    // If ownership is unknown, the save fails too and is retried.
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
      .catch((error: unknown) => log.warn({ err: error, sessionId: id }, 'a session could not be released'))
  }
}
