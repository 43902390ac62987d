/** Readings of a machine's clocks at one moment, in milliseconds. */
export interface Reading {
  /** Since 1970, by the clock that people and NTP set. */
  readonly wall: number
  /** Since boot, by CLOCK_BOOTTIME, which cannot be set. */
  readonly up: number
  readonly bootId: string
}

/** A step of the wall clock that is not agreed yet. */
interface Step {
  /** Milliseconds; negative: backwards. */
  readonly by: number
  /** Milliseconds of running since then in which wall and boot time advanced equally. */
  readonly ran: number
}

/** Period in which the wall clock was behind: what was stamped then may be `by` younger than it looks. */
interface Behind {
  readonly from: number
  readonly to: number
  readonly by: number
  readonly isOver: boolean
}

/** State of the wall clock across restarts; plain data, stored as JSON. */
export interface AgreedTime {
  readonly last: Reading
  /** Wall clock time when it was last agreed. */
  readonly agreedAt: number
  readonly steps: readonly Step[]
  /** Milliseconds by which wall and boot time drifted apart since the last step or agreement. */
  readonly drift: number
  readonly behind: readonly Behind[]
}

/** A step of the server's clock that is neither agreed nor confirmed: deletion by age waits. */
export interface ClockDoubt {
  /** Seconds by which the clock is ahead of the agreed time; negative: behind. */
  readonly aheadSeconds: number
  /** Seconds of running until it is agreed. */
  readonly agreesInSeconds: number
}

/** Milliseconds that a wall clock may deviate without being doubted. */
const believed = 3600_000
/** Wall and boot time that differ by less advance equally. */
const tolerance = 60_000
/** Milliseconds of running at equal speed until the wall clock is agreed. */
export const agreedAfter = 24 * 3600_000
/** Longest interval between stored readings, and so the most that is lost by a crash. */
export const writtenEvery = 10 * 60_000
/** Most steps, and most periods behind; beyond that the oldest two merge, and wait like the younger. */
const mostKept = 16

const spans = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
] as const

const within = (milliseconds: number, limit: number) => Math.abs(milliseconds) < limit

/** State at the first reading; `newest` is the newest time stamp in the data, null without any. */
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

/** Milliseconds by which the wall clock is ahead of the agreed time plus the time passed since. */
export function ahead({ steps }: AgreedTime): number {
  return steps.reduce((sum, { by }) => sum + by, 0)
}

/** Whether the wall clock deviates so far from the agreed time that deletion by age must wait. */
export function isDoubted(time: AgreedTime): boolean {
  return !within(ahead(time), believed)
}

/** Milliseconds of running until nothing is doubted, if the wall clock does not step again. */
export function agreesIn({ steps }: AgreedTime): number {
  return steps.reduce((most, { ran }) => Math.max(most, agreedAfter - ran), 0)
}

/**
 * Adds a new reading (contract §11 "Time"). `wasRunning`: the program has been running since the last reading;
 * otherwise it or the machine restarted in between.
 */
export function observe(time: AgreedTime, reading: Reading, wasRunning: boolean): AgreedTime {
  const { last } = time
  const isSameBoot = reading.bootId === last.bootId && reading.up >= last.up
  // Across a boot, how long the machine was off is unknown: all of it counts as a step.
  const elapsed = isSameBoot ? reading.up - last.up : reading.up
  const ran = wasRunning ? elapsed : 0
  const drift = time.drift + reading.wall - last.wall - elapsed
  const isStep = !within(drift, tolerance)
  // A step while running restarts the wait of all steps; a step across a restart only adds another.
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

/** An administrator confirmed the wall clock. */
export function confirmed(time: AgreedTime): AgreedTime {
  return { last: time.last, agreedAt: time.last.wall, steps: [], drift: 0, behind: over(time.behind) }
}

/**
 * Minimum age in milliseconds of something stamped at `from`, or between `from` and `to`. While the wall clock is
 * doubted, only time that certainly passed counts.
 */
export function ageOf(time: AgreedTime, from: number, to: number = from): number {
  const now = time.last.wall - Math.max(0, isDoubted(time) ? ahead(time) : 0)
  const later = time.behind.reduce(
    (most, period) => (from <= period.to && to >= period.from ? Math.max(most, period.by) : most),
    0,
  )
  return now - to - later
}

/** Cancels a step out against an earlier one in the opposite direction. */
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

/** `unseen`: milliseconds without a reading, in which something may have been stamped. */
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

/** The doubt as a sentence for the log, the audit log and the status. */
export function doubtSentence({ aheadSeconds, agreesInSeconds }: ClockDoubt): string {
  const how = `${span(Math.abs(aheadSeconds))} ${aheadSeconds > 0 ? 'ahead of' : 'behind'}`
  return (
    `the clock is ${how} what it should show: old data is not removed ` +
    `until the clock has run steadily for ${span(agreesInSeconds)}, or \`rsm server confirm-clock\` confirms it`
  )
}

function span(seconds: number): string {
  const [size, unit] = spans.find(([size]) => seconds >= size) ?? spans[2]
  const count = Math.round(seconds / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
