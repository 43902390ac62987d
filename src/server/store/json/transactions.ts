import { RsmError } from '../../../core/errors.ts'
import type { IndexOf, Noun, Records } from '../records.ts'
import type { Transaction } from '../store.ts'
import type { Committer } from './committer.ts'
import { freeze } from './freeze.ts'
import { Layer } from './layer.ts'
import { type Change, type Id, indexList, type Key, type Tables } from './tables.ts'
import { encodeTransaction } from './transaction-line.ts'

/** More than this wait for their turn only when the disk hangs: then it is kinder to refuse than to pile up. */
const maxWaiting = 20_000

/** Runs transactions one after the other over what earlier ones have staged, and hands their changes to the disk. */
export class Transactions {
  private readonly tables: Tables
  private readonly committer: Committer
  private staged: Layer
  private sequence: number
  private readonly lastIds: Partial<Record<Noun, number>>
  private turn: Promise<unknown> = Promise.resolve()
  private waiting = 0

  constructor(tables: Tables, committer: Committer) {
    this.tables = tables
    this.committer = committer
    this.staged = new Layer(tables)
    this.sequence = tables.sequence
    this.lastIds = { ...tables.lastIds }
  }

  async run<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T> {
    if (this.committer.refusal !== null) throw this.committer.refusal
    if (this.waiting >= maxWaiting) throw new RsmError('unavailable', 'too many writes wait for the disk')
    this.waiting++
    try {
      const staging = this.turn.then(() => this.stage(work))
      this.turn = staging.catch(() => undefined)
      const { value, durable } = await staging
      await durable
      return value
    } finally {
      this.waiting--
    }
  }

  /** Resolves when no transaction waits for its turn. */
  async idle(): Promise<void> {
    await this.turn
  }

  /** Makes the layer forget what is in the durable tables by now. */
  settle(changes: readonly Change[]): void {
    for (const change of changes) this.staged.settle(change)
  }

  /** Forgets everything that is not durable; a transaction still running over it can't commit. */
  drop(): void {
    this.staged = new Layer(this.tables)
    this.sequence = this.tables.sequence
  }

  private async stage<T>(
    work: (tx: Transaction) => Promise<T> | T,
  ): Promise<{ value: T; durable: Promise<void> }> {
    if (this.committer.refusal !== null) throw this.committer.refusal
    const { staged } = this
    const changed = new Layer(staged)
    const given = new Map<Noun, number>()
    const value = await work(this.view(changed, given))
    if (this.staged !== staged) {
      throw (
        this.committer.refusal ??
        new RsmError('unavailable', 'an earlier write that this one built upon failed')
      )
    }
    const changes = changed.list()
    const lastIds = [...given]
    if (changes.length === 0 && lastIds.length === 0) {
      // The value may rest on writes that are not durable yet, so the answer waits for them too.
      return {
        value,
        durable: this.committer.push({ sequence: this.sequence, line: null, changes, lastIds }),
      }
    }
    for (const change of changes) checkUnique(changed, change)
    const sequence = this.sequence + 1
    const line = encodeTransaction(sequence, changes, lastIds)
    this.sequence = sequence
    for (const change of changes) staged.set(change)
    return { value, durable: this.committer.push({ sequence, line, changes, lastIds }) }
  }

  private view(changed: Layer, given: Map<Noun, number>): Transaction {
    const raise = (noun: Noun, id: number) => {
      this.lastIds[noun] = Math.max(this.lastIds[noun] ?? 0, id)
    }
    return {
      get: async <N extends Noun>(noun: N, id: Id) => changed.get(noun, id) as Records[N] | undefined,
      find: async <N extends Noun>(noun: N, index: IndexOf<N>, key: Key) =>
        changed.find(noun, index, key) as Records[N][],
      nextId: (noun) => {
        const id = (this.lastIds[noun] ?? 0) + 1
        raise(noun, id)
        given.set(noun, id)
        return id
      },
      put: (noun, record) => {
        if (typeof record.id === 'number') raise(noun, record.id)
        changed.set({ noun, id: record.id, record: freeze(record) })
      },
      remove: (noun, id) => {
        if (changed.get(noun, id) !== undefined) changed.set({ noun, id, record: null })
      },
    }
  }
}

function checkUnique(changed: Layer, { noun, id, record }: Change): void {
  if (record === null) return
  for (const index of indexList[noun]) {
    const key = index.unique ? index.key(record) : null
    const other =
      key === null ? undefined : changed.find(noun, index.name, key).find((held) => held.id !== id)
    if (other !== undefined) {
      throw new RsmError('conflict', `another of the ${noun} has this ${index.name} already (id ${other.id})`)
    }
  }
}
