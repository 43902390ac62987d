/** What the clocks of a machine show at one moment, in milliseconds. */
export interface Reading {
  /** Since 1970, by the clock that people and NTP set. */
  readonly wall: number
  /** Since the boot, by CLOCK_BOOTTIME: nobody sets it. */
  readonly up: number
  /** Names the boot. */
  readonly bootId: string
}

/** A step of the wall clock that has not been agreed yet. */
interface Step {
  /** Milliseconds; negative: back. */
  readonly by: number
  /** Milliseconds of running since, in which wall and boot time went on side by side. */
  readonly ran: number
}

/** When the wall clock was behind: what is stamped so is from then, or was made `by` later and is not as old as it looks. */
interface Behind {
  readonly from: number
  readonly to: number
  readonly by: number
  readonly isOver: boolean
}

/** What is known of a wall clock, over all restarts; plain data, kept as JSON. */
export interface AgreedTime {
  readonly last: Reading
  /** What the wall clock showed when it was last agreed. */
  readonly agreedAt: number
  readonly steps: readonly Step[]
  /** Milliseconds by which wall and boot time have drifted apart since the last step or agreement. */
  readonly drift: number
  readonly behind: readonly Behind[]
}

/** A step of the server's clock that has been neither agreed nor confirmed: what it would remove waits. */
export interface ClockDoubt {
  /** Seconds by which the clock is ahead of what was agreed; negative: behind. */
  readonly aheadSeconds: number
  /** Seconds of running after which it is agreed. */
  readonly agreesInSeconds: number
}

/** What a wall clock may be ahead without being doubted. */
const believed = 3600_000
/** Wall and boot time that differ by less than this go on side by side. */
const tolerance = 60_000
/** Milliseconds of running side by side after which the wall clock is agreed. */
export const agreedAfter = 24 * 3600_000
/** A look is written down at least so often: of one that a crash cut off no more is unknown. */
export const writtenEvery = 10 * 60_000
/** Steps and times behind that are kept apart; older ones beyond are joined, and wait as long as the younger. */
const mostKept = 16

const spans = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
] as const

const within = (milliseconds: number, limit: number) => Math.abs(milliseconds) < limit

/** The first look of a machine; `newest` is the newest time that its data tells of, null without any. */
export function firstTime(reading: Reading, newest: number | null): AgreedTime {
  const by = newest === null ? 0 : reading.wall - newest
  const steps = within(by, tolerance) ? [] : [{ by, ran: 0 }]
  return {
    last: reading,
    agreedAt: newest ?? reading.wall,
    steps,
    drift: 0,
    behind: behindBy(steps, reading, 0, []),
  }
}

/** Milliseconds by which the wall clock is ahead of what is agreed, with the time that has passed since. */
export function ahead({ steps }: AgreedTime): number {
  return steps.reduce((sum, { by }) => sum + by, 0)
}

/** Whether the wall clock is so far from what is agreed that what its time would remove has to wait. */
export function isDoubted(time: AgreedTime): boolean {
  return !within(ahead(time), believed)
}

/** Milliseconds of running until nothing is doubted any more, if the wall clock goes on as it does. */
export function agreesIn({ steps }: AgreedTime): number {
  return steps.reduce((most, { ran }) => Math.max(most, agreedAfter - ran), 0)
}

/**
 * Takes up a new look at the clocks (contract §11 "Time"). `wasRunning`: the program has been running since the last one;
 * else there was a restart between the two, of it or of the machine.
 */
export function observe(time: AgreedTime, reading: Reading, wasRunning: boolean): AgreedTime {
  const { last } = time
  const isSameBoot = reading.bootId === last.bootId && reading.up >= last.up
  // Over a boot nobody knows how long the machine was off: all of that counts as a step.
  const elapsed = isSameBoot ? reading.up - last.up : reading.up
  const ran = wasRunning ? elapsed : 0
  const drift = time.drift + reading.wall - last.wall - elapsed
  const isStep = !within(drift, tolerance)
  // A step while it runs makes all that waits begin anew; one over a restart is only the next that waits.
  const older = time.steps.map((step) => ({ by: step.by, ran: isStep && wasRunning ? 0 : step.ran + ran }))
  const all = isStep ? withStep(older, drift) : older
  const steps = all.filter((step) => step.ran < agreedAfter)
  const backIsAgreed = all.some((step) => step.by < 0 && step.ran >= agreedAfter)
  return {
    last: reading,
    agreedAt: steps.length === 0 ? reading.wall : time.agreedAt,
    steps,
    drift: isStep || steps.length < all.length ? 0 : drift,
    behind: behindBy(
      steps,
      reading,
      wasRunning ? ran : Math.max(elapsed, writtenEvery),
      backIsAgreed ? over(time.behind) : time.behind,
    ),
  }
}

/** Someone who knows says that the wall clock is right. */
export function confirmed(time: AgreedTime): AgreedTime {
  return { last: time.last, agreedAt: time.last.wall, steps: [], drift: 0, behind: over(time.behind) }
}

/**
 * How old something surely is that was stamped at `from`, or between `from` and `to`, in milliseconds: where the wall clock
 * is doubted, no older than by the time that passed.
 */
export function ageOf(time: AgreedTime, from: number, to: number = from): number {
  const now = time.last.wall - Math.max(0, isDoubted(time) ? ahead(time) : 0)
  const later = time.behind.reduce(
    (most, period) => (from <= period.to && to >= period.from ? Math.max(most, period.by) : most),
    0,
  )
  return now - to - later
}

/** One that goes back where another had gone forward takes it back. */
function withStep(steps: readonly Step[], by: number): Step[] {
  const against = steps.findLastIndex((step) => step.by > 0 !== by > 0)
  const rest = steps.filter((_, at) => at !== against)
  const left = by + (steps[against]?.by ?? 0)
  const all = within(left, tolerance) ? rest : [...rest, { by: left, ran: 0 }]
  const [first, second, ...others] = all
  if (all.length <= mostKept || !first || !second) return all
  return [{ by: first.by + second.by, ran: Math.min(first.ran, second.ran) }, ...others]
}

const over = (behind: readonly Behind[]) => behind.filter(({ isOver }) => isOver)

/** `unseen`: milliseconds in which something may have been stamped that nobody has looked at. */
function behindBy(
  steps: readonly Step[],
  { wall }: Reading,
  unseen: number,
  behind: readonly Behind[],
): Behind[] {
  const by = -steps.reduce((sum, step) => sum + step.by, 0)
  const past = over(behind)
  const open = behind.find(({ isOver }) => !isOver)
  if (by < believed) return open ? [...past, { ...open, to: open.to + unseen, isOver: true }] : past
  const now = {
    from: Math.min(open?.from ?? wall, wall - unseen),
    to: Math.max(open?.to ?? wall, wall),
    by: Math.max(open?.by ?? 0, by),
    isOver: false,
  }
  const [first, second, ...others] = past
  if (past.length < mostKept || !first || !second) return [...past, now]
  const from = Math.min(first.from, second.from)
  const to = Math.max(first.to, second.to)
  return [{ from, to, by: Math.max(first.by, second.by), isOver: true }, ...others, now]
}

/** The doubt in a sentence for people: in the log, the audit log and the status. */
export function doubtSentence({ aheadSeconds, agreesInSeconds }: ClockDoubt): string {
  const how = `${span(Math.abs(aheadSeconds))} ${aheadSeconds > 0 ? 'ahead of' : 'behind'}`
  return (
    `the clock is ${how} what it should show: what would be removed as too old waits, ` +
    `until the clock has gone on like this for ${span(agreesInSeconds)} of running, or \`rsm server confirm-clock\` says that it is right`
  )
}

function span(seconds: number): string {
  const [size, unit] = spans.find(([size]) => seconds >= size) ?? spans[2]
  const count = Math.round(seconds / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
