import { setTimeout as delay } from 'node:timers/promises'
import { type AuditHead, beforeFirst, showHead } from '../../../core/audit.ts'
import type { AuditCopyStatus } from '../../../core/protocol/control.ts'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { AuditLog } from '../../seams/audit-log.ts'
import type { Cursor } from './cursor.ts'
import { headOf, linesOf } from './head-of.ts'
import type { Sink } from './sink.ts'

/** Milliseconds between looks for new entries: each leaves within a second. */
const lookEvery = 400
/** Milliseconds until a target that took nothing is tried again: twice as long each time. */
const firstPause = 1_000
const longestPause = 30_000
/** Milliseconds between two notes of how far it has come, while much is copied. */
const noteEvery = 1_000
/** Milliseconds that a stop waits for the last entries. */
const stopPatience = 1_500

interface CopyOptions {
  readonly audit: Pick<AuditLog, 'head' | 'raw'>
  readonly sink: Sink
  readonly cursor: Cursor
  /** As it was given. */
  readonly target: string
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
}

/** Ends when `signal` aborts, too. */
const pause = (milliseconds: number, signal: AbortSignal) =>
  delay(milliseconds, undefined, { signal }).catch(() => undefined)

/** Whether the log has that entry. */
export async function hasEntry(audit: Pick<AuditLog, 'raw'>, { id, hash }: AuditHead): Promise<boolean> {
  for await (const block of audit.raw(id > 1 ? { after: id - 1 } : {})) {
    const [first] = linesOf(block)
    const head = first === undefined ? null : headOf(Buffer.concat([first, Buffer.from('\n')]))
    return head?.id === id && head.hash === hash
  }
  return false
}

/**
 * Copies the audit log to another place, entry by entry as they become durable, each at least once. What waits is in the log
 * itself: a target that is away costs neither memory nor time of the server. After a restart the copy goes on behind what it
 * noted on disk.
 */
export class AuditCopy {
  readonly #options: CopyOptions
  readonly #closing = new AbortController()
  readonly #running: Promise<void>
  /** Behind the last entry that was written; null until it is known where to go on. */
  #at: AuditHead | null = null
  /** What was written and may still be lost on its way, oldest first, with the time from which on it counts as taken. */
  #unsettled: { head: AuditHead; from: number }[] = []
  #taken: AuditHead = beforeFirst
  #noted: AuditHead = beforeFirst
  #notedAt = Number.NEGATIVE_INFINITY
  #newest = 0
  /** When a stop has no time for more. */
  #until = Number.POSITIVE_INFINITY
  #behindSince: number | null = null
  #error: string | null = null
  #pause = firstPause

  constructor(options: CopyOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  get status(): AuditCopyStatus {
    const { target, clock } = this.#options
    const since = this.#behindSince
    return {
      target,
      copied: this.#at?.id ?? 0,
      waiting: Math.max(0, this.#newest - (this.#at?.id ?? 0)),
      behindSeconds: since === null ? 0 : Math.floor((clock.monotonic() - since) / 1000),
      error: this.#error,
    }
  }

  /** Sends what is there by now, if that is quick. */
  async close(): Promise<void> {
    const { log, clock } = this.#options
    this.#until = clock.monotonic() + stopPatience
    this.#closing.abort()
    const finish = async () => {
      await this.#running
      if (this.#error === null) await this.#round()
      if ((await this.#options.sink.close()) && this.#at !== null) this.#taken = this.#at
      await this.#note()
    }
    const patience = new AbortController()
    await Promise.race([
      finish().catch((error: unknown) => log.warn({ err: error }, 'the end of the audit copy was not sent')),
      pause(2 * stopPatience, patience.signal),
    ])
    patience.abort()
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        await this.#round()
        this.#recovered()
        await pause(lookEvery, signal)
      } catch (error) {
        this.#failed(error)
        await pause(this.#pause, signal)
        this.#pause = Math.min(longestPause, this.#pause * 2)
      }
    }
  }

  /** Copies all that is there. */
  async #round(): Promise<void> {
    const { audit, sink, clock } = this.#options
    const newest = await audit.head()
    this.#newest = newest.id
    if (newest.id > (this.#at?.id ?? 0)) this.#behindSince ??= clock.monotonic()
    const from = this.#at ?? (await this.#whereToGoOn())
    this.#at = sink.wasLost() ? this.#goBack() : from
    if (newest.id > this.#at.id) {
      for await (const block of audit.raw({ after: this.#at.id })) {
        await sink.write(block)
        const head = headOf(block)
        if (head !== null) this.#written(head)
        if (clock.monotonic() - this.#notedAt >= noteEvery) await this.#note()
        if (clock.monotonic() >= this.#until) return
      }
      // Lines at the end that are no entries: nothing of them waits.
      if (this.#at.id < newest.id) this.#written(newest)
    }
    this.#behindSince = null
    await this.#note()
  }

  #written(head: AuditHead): void {
    const { sink, clock } = this.#options
    this.#at = head
    const from = clock.monotonic() + sink.settles
    // One a second is enough to go back to.
    const last = this.#unsettled.at(-1)
    if (last !== undefined && Math.floor(last.from / 1_000) === Math.floor(from / 1_000))
      this.#unsettled.pop()
    this.#unsettled.push({ head, from })
  }

  /** The connection was lost: all that it may have lost comes again. */
  #goBack(): AuditHead {
    const { log, target } = this.#options
    const to = this.#at?.id ?? 0
    this.#unsettled = []
    if (to > this.#taken.id)
      log.info(
        { auditCopy: target, from: this.#taken.id + 1, to },
        'the connection of the audit copy was lost: these entries are sent again, some may come twice',
      )
    return this.#taken
  }

  async #whereToGoOn(): Promise<AuditHead> {
    const { audit, sink, cursor, target, log } = this.#options
    // What a file ends with is truer than what was noted: its end may have been cut off.
    const known = (await sink.holds()) ?? (await cursor.read())
    if (known === null) return beforeFirst
    if (!(await hasEntry(audit, known))) {
      log.warn(
        { auditCopy: target, copied: showHead(known) },
        'this audit log is not the one that was copied so far: all of it is copied again',
      )
      return beforeFirst
    }
    this.#taken = known
    log.info(
      { auditCopy: target, after: known.id },
      'the audit copy continues after this entry; later entries are sent again',
    )
    return known
  }

  /** Notes how far it has come, if that has changed. */
  async #note(): Promise<void> {
    const { cursor, clock } = this.#options
    const now = clock.monotonic()
    while (this.#unsettled[0] !== undefined && this.#unsettled[0].from <= now)
      this.#taken = this.#unsettled.shift()?.head ?? this.#taken
    if (this.#taken.id === this.#noted.id && this.#taken.hash === this.#noted.hash) return
    await cursor.write(this.#taken)
    this.#noted = this.#taken
    this.#notedAt = now
  }

  #failed(error: unknown): void {
    const { log, target } = this.#options
    const message = error instanceof Error ? error.message : String(error)
    // Said once, however often it is tried.
    if (message !== this.#error)
      log.warn({ auditCopy: target, err: error }, 'the audit copy is not taken; it is tried again and again')
    this.#error = message
  }

  #recovered(): void {
    this.#pause = firstPause
    if (this.#error === null) return
    this.#error = null
    this.#options.log.info({ auditCopy: this.#options.target }, 'the audit copy is taken again')
  }
}
