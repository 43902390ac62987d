import type { Terminal } from '@xterm/xterm'
import { type Cast, countUntil, resizeOf, timeline } from './cast.ts'

export interface Playback {
  readonly duration: number
  /** Seconds of the timeline, pauses cut short. */
  position(): number
  /** Shows the recording as it was at that moment. */
  seek(moment: number): void
  setIdleCap(seconds: number): void
  /** Goes on by so many seconds, unless the screen has yet to draw what it was given; whether the end is reached. */
  advance(seconds: number): boolean
}

/** Characters that the screen has not drawn yet: beyond that the recording waits for it. */
const mostPending = 1024 * 1024

/** A recording on a screen, moved by its caller's clock. */
export function createPlayback(terminal: Terminal, { cols, rows, events }: Cast, idleCap: number): Playback {
  let times = timeline(events, idleCap)
  let moment = 0
  let shown = 0
  let pending = 0

  function write(text: string): void {
    if (text === '') return
    pending += text.length
    terminal.write(text, () => {
      pending -= text.length
    })
  }
  /** Sizes are in order with the text: the screen takes text later than a new size. */
  function show(until: number): void {
    let text = ''
    for (; shown < until; shown++) {
      const event = events[shown]
      if (event?.kind === 'o') text += event.data
      else if (event !== undefined) {
        const size = resizeOf(event.data)
        const before = text
        text = ''
        if (before === '' && pending === 0) terminal.resize(size.cols, size.rows)
        else terminal.write(before, () => terminal.resize(size.cols, size.rows))
      }
    }
    write(text)
  }
  function seek(to: number): void {
    moment = Math.max(0, Math.min(to, times.at(-1) ?? 0))
    const until = countUntil(times, moment)
    if (until < shown) {
      shown = 0
      // Behind what is still to be drawn, and before what follows.
      terminal.write('', () => terminal.resize(cols, rows))
      terminal.write('\u001bc\u001b[3J')
    }
    show(until)
  }

  terminal.resize(cols, rows)
  return {
    get duration() {
      return times.at(-1) ?? 0
    },
    position: () => moment,
    seek,
    setIdleCap(seconds) {
      const within = moment - (times[shown - 1] ?? 0)
      times = timeline(events, seconds)
      const next = times[shown] ?? Number.POSITIVE_INFINITY
      moment = Math.min((times[shown - 1] ?? 0) + within, next, times.at(-1) ?? 0)
    },
    advance(seconds) {
      if (pending < mostPending) seek(moment + seconds)
      return shown >= events.length
    },
  }
}
