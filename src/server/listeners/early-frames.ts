/** Bytes of frames that may come over a link before the answer to its first ping: more than the sockets of both ends hold. */
const linkLimit = 16 * 1024 * 1024
/** The same over all links. */
const totalLimit = 64 * 1024 * 1024
/** Bytes that a frame takes beside its own. */
const frameCost = 256

export interface Frame {
  readonly data: Buffer
  readonly isBinary: boolean
}

/** The frames that one link has sent before its first pong, in their order. */
export interface EarlyFrames {
  readonly bytes: number
  add(frame: Frame): void
  /** Answers them, and keeps none. */
  take(): readonly Frame[]
}

/** Bounds what links keep before their first pongs, which any number of hostile hosts may put off: each alone, and all together. */
export interface EarlyRoom {
  /** `refuse` hears that the link keeps too much: more than its bound, or the most of all where together they keep too much. */
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
