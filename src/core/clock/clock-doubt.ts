/** A step of the server's clock that has been neither agreed nor confirmed: what it would remove waits. */
export interface ClockDoubt {
  /** Seconds by which the clock is ahead of what was agreed; negative: behind. */
  readonly aheadSeconds: number
  /** Seconds of running after which it is agreed. */
  readonly agreesInSeconds: number
}

const spans = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
] as const

function span(seconds: number): string {
  const [size, unit] = spans.find(([size]) => seconds >= size) ?? spans[2]
  const count = Math.round(seconds / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** What people are told of it: in the log, the audit log and the status. */
export function doubtSentence({ aheadSeconds, agreesInSeconds }: ClockDoubt): string {
  const how = `${span(Math.abs(aheadSeconds))} ${aheadSeconds > 0 ? 'ahead of' : 'behind'}`
  return (
    `the clock is ${how} what it should show: what would be removed as too old waits, ` +
    `until the clock has gone on like this for ${span(agreesInSeconds)} of running, or \`rsm server confirm-clock\` says that it is right`
  )
}
