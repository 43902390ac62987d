import type { Terminal } from '@xterm/xterm'
import { useEffect, useRef, useState } from 'preact/hooks'
import { shownClock } from '../parts/shown.tsx'
import { createScreen } from '../terminals/screen.ts'
import { type Cast, countUntil, resizeOf, timeline } from './cast.ts'

const speeds = [0.5, 1, 2, 4, 8]
const idleCaps = [1, 2, 5, Number.POSITIVE_INFINITY]
const firstIdleCap = 2
/** Seconds moved by an arrow key. */
const seekStep = 5
const [smallestFont, largestFont] = [6, 14]
/** Margin around the screen in pixels, with room for a scroll bar. */
const margin = 36

/** Characters not yet drawn by the screen above which playback waits. */
const mostPending = 1024 * 1024

interface Playback {
  readonly duration: number
  /** Seconds of the timeline, with shortened pauses. */
  position(): number
  seek(moment: number): void
  setIdleCap(seconds: number): void
  /** Advances, unless the screen is still drawing; returns whether the end is reached. */
  advance(seconds: number): boolean
}

/** Plays a recording. Space plays and pauses, arrow keys seek. */
export function Player({ cast }: { cast: Cast }) {
  const element = useRef<HTMLDivElement>(null)
  const playback = useRef<Playback>(undefined)
  const [isPlaying, setPlaying] = useState(false)
  const [speed, setSpeed] = useState(1)
  const [idleCap, setIdleCap] = useState(firstIdleCap)
  const [position, setPosition] = useState(0)
  const [duration, setDuration] = useState(0)

  useEffect(() => {
    if (element.current === null) return undefined
    const screen = createScreen(element.current)
    screen.answer(false)
    screen.terminal.options.disableStdin = true
    const made = createPlayback(screen.terminal, cast, firstIdleCap)
    const { current: room } = element
    const scale = () => scaleTo(screen.terminal, room)
    const observer = new ResizeObserver(scale)
    observer.observe(room)
    screen.terminal.onResize(scale)
    playback.current = made
    setDuration(made.duration)
    setPlaying(true)
    return () => {
      observer.disconnect()
      screen.close()
    }
  }, [cast])

  useEffect(() => {
    if (!isPlaying) return undefined
    let before = performance.now()
    let frame = requestAnimationFrame(function draw(now) {
      const isOver = playback.current?.advance(((now - before) / 1000) * speed) ?? true
      before = now
      setPosition(playback.current?.position() ?? 0)
      if (isOver) setPlaying(false)
      else frame = requestAnimationFrame(draw)
    })
    return () => cancelAnimationFrame(frame)
  }, [isPlaying, speed])

  function seek(moment: number): void {
    playback.current?.seek(moment)
    setPosition(playback.current?.position() ?? 0)
  }
  function toggle(): void {
    if (!isPlaying && position >= duration) seek(0)
    setPlaying(!isPlaying)
  }
  function cap(seconds: number): void {
    setIdleCap(seconds)
    playback.current?.setIdleCap(seconds)
    setPosition(playback.current?.position() ?? 0)
    setDuration(playback.current?.duration ?? 0)
  }
  function press(event: KeyboardEvent): void {
    if (event.target instanceof Element && event.target.closest('select, button, input') !== null) return
    if (event.key === ' ') toggle()
    else if (event.key === 'ArrowLeft') seek(position - seekStep)
    else if (event.key === 'ArrowRight') seek(position + seekStep)
    else return
    event.preventDefault()
  }

  return (
    <div class="player" role="group" aria-label="Player" onKeyDown={press}>
      <div class="cast" ref={element} tabIndex={0} aria-label="Recording" />
      <div class="controls">
        <button type="button" class="primary" onClick={toggle}>
          {isPlaying ? 'Pause' : 'Play'}
        </button>
        <input
          type="range"
          aria-label="Position"
          aria-valuetext={`${shownClock(position)} of ${shownClock(duration)}`}
          min={0}
          max={duration}
          step="any"
          value={position}
          onInput={(event) => seek(Number(event.currentTarget.value))}
        />
        <output>{`${shownClock(position)} / ${shownClock(duration)}`}</output>
        <label class="inline">
          Speed
          <select value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
            {speeds.map((one) => (
              <option key={one} value={one}>{`${one}×`}</option>
            ))}
          </select>
        </label>
        <label class="inline">
          Pauses
          <select value={String(idleCap)} onChange={(event) => cap(Number(event.currentTarget.value))}>
            {idleCaps.map((one) => (
              <option key={one} value={String(one)}>
                {Number.isFinite(one) ? `${one} s at most` : 'as they were'}
              </option>
            ))}
          </select>
        </label>
      </div>
    </div>
  )
}

/** Playback on a screen, driven by the caller's clock. */
function createPlayback(terminal: Terminal, { cols, rows, events }: Cast, idleCap: number): Playback {
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
  /** Keeps text and sizes in order, because the screen processes text asynchronously. */
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
      // Queued after pending output, and before the new output.
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

/** Chooses the largest font size, within limits, that shows the whole screen. */
function scaleTo(terminal: Terminal, room: HTMLElement): void {
  const drawn = terminal.element?.querySelector('.xterm-screen')
  if (drawn == null || drawn.clientWidth === 0) return
  const { fontSize = largestFont } = terminal.options
  const ratio = Math.min(
    (room.clientWidth - margin) / drawn.clientWidth,
    (room.clientHeight - margin) / drawn.clientHeight,
  )
  const wanted = Math.max(smallestFont, Math.min(largestFont, Math.floor(fontSize * ratio * 2) / 2))
  if (wanted !== fontSize) terminal.options.fontSize = wanted
}
