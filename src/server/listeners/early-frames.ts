/** Bytes of frames on one link before its first pong; more than the socket buffers of both ends. */
const linkLimit = 16 * 1024 * 1024
/** The same over all links. */
const totalLimit = 64 * 1024 * 1024
/** Overhead of a frame in bytes. */
const frameCost = 256

export interface Frame {
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
export interface EarlyRoom {
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
