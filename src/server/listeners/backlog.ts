/** While a link has so many bytes of frames waiting to be stored, it is not read: its agent then holds them. */
const linkHigh = 1024 * 1024
const linkLow = 256 * 1024
/** The same over all links; those that have next to nothing waiting are read all the same. */
const totalHigh = 16 * 1024 * 1024
const totalLow = 8 * 1024 * 1024
const nextToNothing = 64 * 1024

/** How a link ceases to read and goes on. */
export interface Holding {
  hold: () => void
  release: () => void
}

/** One link's part of the backlog. */
export interface BacklogShare {
  readonly bytes: number
  readonly isHeld: boolean
  /** Counts a frame in, or out with its bytes negative. */
  add(bytes: number): void
}

/** Bounds the frames that are read and not dealt with, for each link and over all of them. */
export interface Backlog {
  share(holding: Holding): BacklogShare
}

export function createBacklog(): Backlog {
  let total = 0
  const held = new Set<{ bytes: number; release: () => void }>()

  return {
    share({ hold, release }) {
      const own = { bytes: 0, release }
      const isTooMuch = () => own.bytes > linkHigh || (total > totalHigh && own.bytes > nextToNothing)
      return {
        get bytes() {
          return own.bytes
        },
        get isHeld() {
          return held.has(own)
        },
        add(bytes) {
          own.bytes += bytes
          total += bytes
          if (!held.has(own) && bytes > 0 && isTooMuch()) {
            held.add(own)
            hold()
          } else if (bytes < 0)
            for (const one of total < totalLow ? held : [own]) {
              const isFree = one.bytes < linkLow && (total < totalLow || one.bytes <= nextToNothing)
              if (isFree && held.delete(one)) one.release()
            }
        },
      }
    },
  }
}
