import { BoundedMap } from '../../core/bounded-map.ts'
import type { MessageType } from '../../core/protocol/messages.ts'
import { Allowance } from '../../core/rates.ts'

/** Limits shared by the links of all agents. */
export interface LinkBounds {
  readonly backlog: Backlog
  readonly earlyRoom: EarlyRoom
  readonly rate: FrameRate
  readonly strays: Allowance
}

export const createLinkBounds = (): LinkBounds => ({
  backlog: createBacklog(),
  earlyRoom: createEarlyRoom(),
  rate: new FrameRate(),
  strays: createStrayAllowance(),
})

/**
 * Frames that an agent may send at once, and per second after that. A script sends at most one output frame
 * per 10 ms, so 64 busy ones send 6,400; an agent that is slowed down sends larger frames.
 */
const frameBurst = 100_000
const framesPerSecond = 10_000
/** Shortest pause of a link that sent too much, in milliseconds. */
const shortestPause = 100
/** Cost of these frames: each may be a commit of its own, while output shares commits. */
const commitCost = 10
const commits: ReadonlySet<MessageType> = new Set([
  'SCRIPT_PHASE',
  'SCRIPT_COMPLETE',
  'TERMINAL_OPENED',
  'TERMINAL_CLOSED',
])

export const costOf = (type: MessageType): number => (commits.has(type) ? commitCost : 1)

/** Limits each agent's frame rate over all its links. Excess frames wait at the agent. */
export class FrameRate {
  readonly #allowance = new Allowance(frameBurst, 1000 / framesPerSecond)

  /** Counts frames of a host at `now`; returns the milliseconds to pause reading. */
  take(hostId: number, frames: number, now: number): number {
    const over = this.#allowance.spend(hostId, frames, now)
    return over > 0 ? over + shortestPause : 0
  }
}

/** Stray frames that an agent may send at once; milliseconds until it may send another: 600 a minute. */
const mostStrays = 600
const strayPeriod = 100
/**
 * Frames about one task or session that may be in flight before the agent learns that it does not own it;
 * counted as one. An rsm agent has at most 1,024 in flight.
 */
const straysInFlight = 2048
/** Tasks and sessions tracked per link. */
const mostSubjects = 1024

/** Budget of stray frames by agent, over all its links. */
export const createStrayAllowance = (): Allowance => new Allowance(mostStrays, strayPeriod)

/** Counts the stray frames of one link (P31). */
export class StrayFrames {
  readonly #allowance: Allowance
  readonly #agentId: string
  readonly #frames = new BoundedMap<string, { count: number }>(mostSubjects)

  constructor(allowance: Allowance, agentId: string) {
    this.#allowance = allowance
    this.#agentId = agentId
  }

  /** Counts a frame about a task or session at `now` (monotonic milliseconds); false above the budget. */
  take(about: string | null, now: number): boolean {
    return (about !== null && !this.#counts(about)) || this.#allowance.take(this.#agentId, now) === 0
  }

  #counts(about: string): boolean {
    const frames = this.#frames.get(about)
    if (frames) return frames.count++ > straysInFlight
    this.#frames.set(about, { count: 1 })
    return true
  }
}

/** Backlog in bytes at which reading a link pauses, so that its agent holds the rest, and at which it resumes. */
const linkHigh = 1024 * 1024
const linkLow = 256 * 1024
/** The same over all links; links with almost no backlog are read anyway. */
const totalHigh = 16 * 1024 * 1024
const totalLow = 8 * 1024 * 1024
const nextToNothing = 64 * 1024

interface Flow {
  pause: () => void
  resume: () => void
}

export interface BacklogShare {
  readonly bytes: number
  readonly isPaused: boolean
  /** Adds a frame, or removes it if negative. */
  add(bytes: number): void
}

/** Limits frames received but not yet processed, per link and in total. */
interface Backlog {
  share(flow: Flow): BacklogShare
}

export function createBacklog(): Backlog {
  let total = 0
  const paused = new Set<{ bytes: number; resume: () => void }>()

  return {
    share({ pause, resume }) {
      const own = { bytes: 0, resume }
      const isTooMuch = () => own.bytes > linkHigh || (total > totalHigh && own.bytes > nextToNothing)
      return {
        get bytes() {
          return own.bytes
        },
        get isPaused() {
          return paused.has(own)
        },
        add(bytes) {
          own.bytes += bytes
          total += bytes
          if (!paused.has(own) && bytes > 0 && isTooMuch()) {
            paused.add(own)
            pause()
          } else if (bytes < 0)
            for (const one of total < totalLow ? paused : [own]) {
              const isFree = one.bytes < linkLow && (total < totalLow || one.bytes <= nextToNothing)
              if (isFree && paused.delete(one)) one.resume()
            }
        },
      }
    },
  }
}

/** Bytes of frames on one link before its first pong; more than the socket buffers of both ends. */
const linkLimit = 16 * 1024 * 1024
/** The same over all links. */
const totalLimit = 64 * 1024 * 1024
/** Overhead of a frame in bytes. */
const frameCost = 256

interface Frame {
  readonly data: Buffer
  readonly isBinary: boolean
}

/** Frames before a link's first pong, in order. */
export interface EarlyFrames {
  readonly bytes: number
  add(frame: Frame): void
  /** Returns the frames and forgets them. */
  take(): readonly Frame[]
}

/** Limits frames before the first pongs, which hostile hosts can delay, per link and in total. */
interface EarlyRoom {
  /** `refuse` is called when the link exceeds its limit, or is the largest when the total does. */
  open(refuse: () => void): EarlyFrames
}

export function createEarlyRoom(): EarlyRoom {
  let total = 0
  const links = new Set<{ bytes: number; drop: () => void }>()

  return {
    open(refuse) {
      let frames: Frame[] = []
      const free = () => {
        total -= link.bytes
        link.bytes = 0
        frames = []
        links.delete(link)
      }
      const link = {
        bytes: 0,
        drop() {
          free()
          refuse()
        },
      }
      return {
        get bytes() {
          return link.bytes
        },
        add(frame) {
          frames.push(frame)
          links.add(link)
          const bytes = frame.data.length + frameCost
          link.bytes += bytes
          total += bytes
          if (link.bytes > linkLimit) link.drop()
          else if (total > totalLimit) largestOf(links)?.drop()
        },
        take() {
          const taken = frames
          free()
          return taken
        },
      }
    },
  }
}

function largestOf<T extends { bytes: number }>(links: Iterable<T>): T | undefined {
  let largest: T | undefined
  for (const link of links) if (largest === undefined || link.bytes > largest.bytes) largest = link
  return largest
}
