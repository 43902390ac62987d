import { sinceBoot } from '../../../disk/agreed-clock.ts'
import type { Clock } from '../../../disk/clock.ts'
import type { AuditLog } from '../../storage/ports/audit-log.ts'
import type { Member, Ownership } from '../../storage/ports/cluster.ts'
import type { ScheduleRecord } from '../../storage/records/schedule.ts'
import type { Context } from '../context.ts'
import { bindOlder } from './rights.ts'
import { type ClockReading, createSlotRunner, type SlotResult } from './slot-runner.ts'

/** Milliseconds; bounds how late a changed clock or a lost wake-up is noticed. */
const longestWait = 1000
const shortestWait = 20
/** Schedules evaluated together: their transactions share a commit. */
const atOnce = 50
/** Milliseconds; a clock jump of up to this counts as passed time, so that it makes slots due or delays them. */
const believed = 3600_000
/** Name under which a server claims this work, in the same namespace as task ids. */
const pass = 'schedules'

interface PlannerDependencies {
  context: Context
  ownership: Ownership
  member: Member
  audit: Pick<AuditLog, 'refusal'>
}

/** Runs schedules at their slots. Any server of a store may do it, one at a time; each slot runs only once. */
export interface Planner {
  start(): void
  /** Resolves when the current pass has ended. */
  stop(): Promise<void>
}

export function createPlanner({ context, ownership, member, audit }: PlannerDependencies): Planner {
  const { store, clock, log } = context
  const runner = createSlotRunner(context)
  const jumps = followJumps(clock)
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | null = null
  let isStopped = true
  /** Milliseconds since 1970; null: nothing is due until a schedule changes. */
  let nextDue: number | null = 0
  /** Schedules changed since the last pass. */
  let isStale = true
  /** Owners whose schedules must be checked again; `judgesAll`: those of every owner. */
  const owners = new Set<number>()
  let judgesAll = true
  let isBound = false
  let restore: { isOpen: boolean; confirmedAt: number | null } | null = null

  const hasNews = () => isStale || judgesAll || owners.size > 0 || jumps.isBack()
  const wake = () => {
    isStale = true
    schedule(shortestWait)
  }
  store.watch('schedules', wake)
  store.watch('runs', () => {
    restore = null
  })
  store.watch('users', (id) => {
    if (id === null) judgesAll = true
    else owners.add(id)
    wake()
  })
  store.watch('tokens', (id) => {
    // Token updates (such as last use) also arrive here; only a deleted token affects its schedules.
    if (id === null) judgesAll = true
    else void noteToken(id)
  })

  async function noteToken(id: number): Promise<void> {
    const token = await store.get('tokens', id).catch(() => undefined)
    if (token) return
    judgesAll = true
    wake()
  }

  /** Nothing runs during an unconfirmed restore. Slots before its confirmation may have run, in the lost data. */
  async function restoreNow() {
    if (restore !== null) return restore
    const notes = (await store.query('runs')).items.flatMap((run) => run.restore ?? [])
    const confirmed = notes.flatMap(({ confirmedAt }) =>
      confirmedAt === null ? [] : Date.parse(confirmedAt),
    )
    const isOpen = notes.some(({ confirmedAt }) => confirmedAt === null)
    restore = { isOpen, confirmedAt: confirmed.length === 0 ? null : Math.max(...confirmed) }
    return restore
  }

  async function forEach(work: (record: ScheduleRecord) => Promise<void>): Promise<void> {
    for (let offset = 0; ; offset += atOnce) {
      const { items } = await store.query('schedules', { offset, limit: atOnce })
      for (const record of items) await work(record)
      if (items.length < atOnce) return
    }
  }

  async function judge(): Promise<void> {
    const all = judgesAll
    judgesAll = false
    const changed = [...owners]
    owners.clear()
    try {
      if (all) return await forEach((record) => runner.judge(record))
      for (const id of changed)
        for (const record of await store.find('schedules', 'ownerId', id)) await runner.judge(record)
    } catch (error) {
      judgesAll ||= all
      for (const id of changed) owners.add(id)
      throw error
    }
  }

  async function goBack(): Promise<void> {
    const { now } = jumps.read()
    await forEach((record) => runner.rewind(record, now))
    jumps.doneBack()
  }

  /** Evaluates all due schedules. Returns how many wait for something other than time. */
  async function pollDue(restoredAt: number | null): Promise<number> {
    for (let waiting = 0; ; ) {
      isStale = false
      const query = { order: 'dueAt', offset: waiting, limit: atOnce } as const
      const { items } = await store.query('schedules', query)
      const present = { ...jumps.read(), restoredAt }
      const { now } = present
      const due = items.filter(({ dueAt }) => dueAt !== null && Date.parse(dueAt) <= now)
      if (due.length === 0 || isStopped) {
        const next = items.find(({ dueAt }) => dueAt !== null)?.dueAt ?? null
        nextDue = next === null ? null : Date.parse(next)
        return waiting
      }
      const results = await Promise.all(
        due.map((record) =>
          runner.poll(record, present).catch((error: unknown): SlotResult => {
            log.warn({ err: error, schedule: record.name }, 'could not evaluate a schedule; retrying')
            return 'WAITS'
          }),
        ),
      )
      waiting += results.filter((one) => one === 'WAITS').length
    }
  }

  async function doPass(): Promise<number> {
    // Run nothing that cannot be recorded.
    if (store.readOnlyReason !== null || audit.refusal !== null) return 1
    if (!isBound) await bindOlder(context)
    isBound = true
    const { isOpen, confirmedAt } = await restoreNow()
    if (isOpen) return 1
    const [mine] = await ownership.claim(member, [pass])
    if (mine === undefined) return 1
    try {
      if (jumps.isBack()) await goBack()
      await judge()
      return await pollDue(confirmedAt)
    } finally {
      await ownership.release(member, [pass])
    }
  }

  let waiting = 0
  function tick(): void {
    if (isStopped || running) return
    jumps.read()
    const isDue = hasNews() || waiting > 0 || (nextDue !== null && nextDue <= clock.now())
    if (!isDue) return schedule(longestWait)
    running = doPass()
      .then((left) => {
        waiting = left
      })
      .catch((error: unknown) => {
        waiting = 1
        if (!isStopped) log.warn({ err: error }, 'could not evaluate schedules; retrying')
      })
      .finally(() => {
        running = null
        schedule(hasNews() && waiting === 0 ? shortestWait : longestWait)
      })
  }

  function schedule(most: number): void {
    if (isStopped || running) return
    clearTimeout(timer)
    const left = nextDue === null ? most : Math.min(most, nextDue - clock.now())
    // Do not poll waiting schedules any faster.
    timer = setTimeout(tick, left > 0 ? left : waiting > 0 ? most : 0)
  }

  return {
    start() {
      isStopped = false
      schedule(shortestWait)
    },
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await running
    },
  }
}

/**
 * Detects clock jumps while this process runs, by comparison with CLOCK_BOOTTIME, which cannot be set. Time between
 * two starts is not a jump: slots in it count as missed (contract §14).
 */
function followJumps(clock: Clock) {
  const up = () => clock.sinceBoot?.() ?? sinceBoot()
  let ahead = clock.now() - up()
  let jumpedTo: number | null = null
  let isBack = false
  return {
    read(): ClockReading {
      const now = clock.now()
      const by = now - up() - ahead
      ahead += by
      if (Math.abs(by) > believed) {
        jumpedTo = by > 0 ? now : null
        isBack = by < 0
      }
      return { now, jumpedTo }
    },
    /** Whether the clock was set back and schedules are not rewound yet. */
    isBack: () => isBack,
    doneBack() {
      isBack = false
    },
  }
}
