import { setImmediate } from 'node:timers/promises'
import { RsmError } from '../../../core/errors.ts'
import { isDiskFull } from '../../../disk/durable.ts'
import { JournalDeleted, type JournalFile } from './journal-file.ts'
import type { Change } from './tables.ts'

/** A transaction on its way to the disk; one without changes (`line` null) only waits for those before it. */
export interface Commit {
  readonly sequence: number
  readonly line: string | null
  readonly changes: readonly Change[]
  readonly lastIds: readonly (readonly [Change['noun'], number])[]
}

interface Waiting {
  commit: Commit
  resolve: () => void
  reject: (error: unknown) => void
}

/** What the committer tells the store. */
export interface CommitEvents {
  /** The next lines are about to be written; where it rejects they are not. */
  writing(): Promise<void>
  /** These are durable now. */
  durable(commits: readonly Commit[]): void
  /** Everything not yet durable is void. */
  dropped(): void
  /** The disk has no room: writes stop until `resume`. */
  full(error: unknown): void
  /** Somebody has deleted the journal: no write is taken any more. */
  deleted(error: Error): void
  /** The disk can't be trusted any more: nothing may be tried again. */
  fatal(error: unknown): void
}

/** Most characters that go out in one write; one larger transaction goes alone. */
const maxBatch = 8 * 1024 * 1024

/** Group commit: all that arrived while the last fdatasync ran goes out in one write and one fdatasync. */
export class Committer {
  file: JournalFile
  /** Why writes are refused, or null. */
  refusal: RsmError | null = null
  private readonly events: CommitEvents
  private waiting: Waiting[] = []
  private between: (() => Promise<void>)[] = []
  private running = Promise.resolve()
  private busy = false
  private failed = false

  constructor(file: JournalFile, events: CommitEvents) {
    this.file = file
    this.events = events
  }

  /** Commits that wait for the next batch. */
  get queueLength(): number {
    return this.waiting.length
  }

  /** Calls `resolve` once the commit, and all before it, are durable; the caller has seen that there is no refusal. */
  push(commit: Commit, resolve: () => void, reject: (error: unknown) => void): void {
    if (commit.line === null && !this.busy) return resolve()
    this.waiting.push({ commit, resolve, reject })
    this.start()
  }

  /** Runs `work` while no batch is on its way: memory is then exactly what the journal says. */
  exclusive(work: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.between.push(() => work().then(resolve, reject))
      this.start()
    })
  }

  /** Takes writes again after the disk was full. */
  resume(): void {
    if (!this.failed) this.refusal = null
  }

  /** Resolves when nothing is on its way. */
  async idle(): Promise<void> {
    while (this.busy) await this.running
  }

  /** Ends all writing for good: after a failed fsync the page cache lies, so a second try would prove nothing. */
  fail(error: unknown): void {
    this.failed = true
    this.refuse(
      `the disk failed while writing the journal (${text(error)}); the server has to be started anew`,
      { cause: error },
    )
    this.events.fatal(error)
  }

  private start(): void {
    if (!this.busy) this.running = this.run()
  }

  private async run(): Promise<void> {
    this.busy = true
    while (this.waiting.length > 0 || this.between.length > 0) {
      // Callers whose write has just become durable come back with the next within this turn: let them join the batch.
      await setImmediate()
      for (const work of this.between.splice(0)) await work()
      const batch = this.take()
      const lines = batch.map(({ commit }) => commit.line ?? '').join('')
      try {
        if (lines !== '') {
          await this.events.writing()
          await this.file.append(Buffer.from(lines))
        }
      } catch (error) {
        await this.giveUp(batch, error)
        continue
      }
      this.events.durable(batch.map(({ commit }) => commit))
      for (const waiting of batch) waiting.resolve()
    }
    // In the same turn as the last look: whoever comes now starts anew.
    this.busy = false
  }

  private take(): Waiting[] {
    let size = 0
    let count = 0
    for (const { commit } of this.waiting) {
      size += commit.line?.length ?? 0
      if (count > 0 && size > maxBatch) break
      count++
    }
    return this.waiting.splice(0, count)
  }

  private async giveUp(batch: Waiting[], error: unknown): Promise<void> {
    this.waiting.unshift(...batch)
    if (error instanceof JournalDeleted) return this.deleted(error)
    if (!isDiskFull(error)) return this.fail(error)
    try {
      await this.file.cutBack()
    } catch (failure) {
      return this.fail(failure)
    }
    this.refuse('the disk of the data directory is full; writes are refused until there is room', {
      cause: error,
      retryAfter: 5,
    })
    this.events.full(error)
  }

  /** Reads go on from memory; no later write may succeed where this one did not. */
  private deleted(error: JournalDeleted): void {
    this.failed = true
    this.refuse(error.message, { cause: error })
    this.events.deleted(error)
  }

  /** Later transactions have read what an earlier one staged: when one falls, all that wait fall with it. */
  private refuse(reason: string, details: { cause: unknown; retryAfter?: number }): void {
    const refusal = new RsmError('unavailable', reason, details)
    this.refusal = refusal
    this.events.dropped()
    for (const waiting of this.waiting.splice(0)) waiting.reject(refusal)
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
