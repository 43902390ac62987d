import { BoundedMap } from '../../core/bounded-map.ts'
import type { MessageType } from '../../core/protocol/messages.ts'
import { Allowance } from '../../core/rates.ts'
import { createEarlyRoom, type EarlyRoom } from './early-frames.ts'

/** Bounds that the links of all agents share. */
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
 * Frames that one agent may send at once, and in each second from then on. A script's output is one frame in 10 ms at most, so
 * 64 busy ones send 6,400; an agent that is slowed down sends longer ones.
 */
const frameBurst = 100_000
const framesPerSecond = 10_000
/** Milliseconds for which a link that has sent too much is not read, at least. */
const shortestPause = 100
/** Frames that one of these counts as: it may be a commit of its own, where output shares one with what came beside it. */
const commitCost = 10
const commits: ReadonlySet<MessageType> = new Set([
  'SCRIPT_PHASE',
  'SCRIPT_COMPLETE',
  'TERMINAL_OPENED',
  'TERMINAL_CLOSED',
])

export const costOf = (type: MessageType): number => (commits.has(type) ? commitCost : 1)

/** How fast agents may send, over however many links. Frames beyond it wait in the socket, and so with the agent. */
export class FrameRate {
  readonly #allowance = new Allowance(frameBurst, 1000 / framesPerSecond)

  /** Counts frames of a host at `now`; answers for how many milliseconds its link is not to be read. */
  take(hostId: number, frames: number, now: number): number {
    const over = this.#allowance.spend(hostId, frames, now)
    return over > 0 ? over + shortestPause : 0
  }
}

/** Stray frames that an agent may send at once, and milliseconds until it may send one more: 600 a minute. */
const mostStrays = 600
const strayPeriod = 100
/**
 * Frames about one task or session that may be on their way while the agent has yet to hear that it does not own it: they count
 * as one. An agent of ours has 1,024 of them on their way at most.
 */
const straysInFlight = 2048
/** Tasks and sessions that are told apart on one link. */
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

  /** One more at `now` (monotonic milliseconds), about this task or session; false: it is one too many. */
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

/** While a link has so many bytes of frames waiting to be stored, it is not read: its agent then holds them. */
const linkHigh = 1024 * 1024
const linkLow = 256 * 1024
/** The same over all links; those that have next to nothing waiting are read all the same. */
const totalHigh = 16 * 1024 * 1024
const totalLow = 8 * 1024 * 1024
const nextToNothing = 64 * 1024

/** Pauses and resumes reading a link. */
interface Flow {
  pause: () => void
  resume: () => void
}

/** One link's part of the backlog. */
export interface BacklogShare {
  readonly bytes: number
  readonly isPaused: boolean
  /** Counts a frame in, or out with its bytes negative. */
  add(bytes: number): void
}

/** Bounds the frames that are read and not dealt with, for each link and over all of them. */
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
