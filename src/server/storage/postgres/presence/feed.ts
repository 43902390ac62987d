import type { Clock } from '../../../../disk/clock.ts'
import type { Channel } from '../hints/channel.ts'
import { decodeIds, encodeIds } from '../hints/lines.ts'
import type { Neighbours } from '../ownership/ownership.ts'
import type { Part, Signs } from './signs.ts'

/** Milliseconds. */
const heardEvery = 1_000
const gatherTime = 100
/** Characters of one line: a longer one would not fit into a notification, and is read from the table. */
const longestLine = 7_000

const kinds = { heard: 'heard', state: 'presence', unfit: 'presenceKept', gone: 'presenceGone' } as const

interface FeedOptions {
  channel: Channel
  neighbours: Neighbours
  clock: Clock
  /** Those parts of what is known of a host, to be told; null where nothing is. */
  signs: (hostId: number, parts: Iterable<Part>) => Partial<Signs> | null
}

/** Hears news of other servers. */
export interface FeedListener {
  /** `at`: milliseconds since 1970. */
  heard(hostIds: readonly number[], at: number): void
  told(hostId: number, signs: Partial<Signs>): void
  gone(hostIds: readonly number[]): void
  /** These are to be read from the table. */
  unread(hostIds: readonly number[]): void
}

/** News of hosts between servers: each second the hosts that were heard, and soon every change. */
export interface Feed {
  heard(hostId: number): void
  changed(hostId: number, parts: Iterable<Part>): void
  gone(hostId: number): void
  /** When all other servers that live had been heard, monotonic; infinity where there is none. */
  heardTo(): number
  close(): void
}

export function createFeed({ channel, neighbours, clock, signs }: FeedOptions, listener: FeedListener): Feed {
  let heard = new Set<number>()
  let changed = new Map<number, Set<Part>>()
  let gone = new Set<number>()
  let gathering: NodeJS.Timeout | null = null
  /** Monotonic milliseconds, by epoch. */
  const saidAt = new Map<number, number>()

  /** Lost lines are read from the table. */
  const send = (lines: readonly string[]) => void channel.send(lines).catch(() => undefined)

  const ticking = setInterval(() => {
    const own = neighbours.own()
    if (own === null) return
    const texts = encodeIds(heard)
    heard = new Set()
    const head = `${kinds.heard} ${own} ${Math.round(clock.now())}`
    send(texts.length === 0 ? [`${head} `] : texts.map((text) => `${head} ${text}`))
  }, heardEvery).unref()

  function tell(): void {
    gathering = null
    const lines = encodeIds(gone).map((text) => `${kinds.gone} ${text}`)
    const unfit: number[] = []
    for (const [hostId, parts] of changed) {
      const its = signs(hostId, parts)
      if (its === null) continue
      const line = `${kinds.state} ${JSON.stringify([hostId, its])}`
      if (Buffer.byteLength(line) > longestLine) unfit.push(hostId)
      else lines.push(line)
    }
    gone = new Set()
    changed = new Map()
    if (neighbours.own() !== null)
      send([...lines, ...encodeIds(unfit).map((text) => `${kinds.unfit} ${text}`)])
  }

  function gather(): void {
    gathering ??= setTimeout(tell, gatherTime).unref()
  }

  channel.hear(kinds.heard, (text) => {
    const [epoch, at, ids = ''] = text.split(' ')
    saidAt.set(Number(epoch), clock.monotonic())
    listener.heard(decodeIds(ids), Number(at))
  })
  channel.hear(kinds.state, (text) => {
    const [hostId, its] = JSON.parse(text) as [number, Partial<Signs>]
    listener.told(hostId, its)
  })
  channel.hear(kinds.unfit, (text) => listener.unread(decodeIds(text)))
  channel.hear(kinds.gone, (text) => listener.gone(decodeIds(text)))

  return {
    heard: (hostId) => void heard.add(hostId),
    changed(hostId, parts) {
      changed.set(hostId, new Set([...(changed.get(hostId) ?? []), ...parts]))
      gather()
    },
    gone(hostId) {
      changed.delete(hostId)
      heard.delete(hostId)
      gone.add(hostId)
      gather()
    },
    heardTo() {
      const others = neighbours.others()
      for (const epoch of saidAt.keys()) if (!others.has(epoch)) saidAt.delete(epoch)
      // Who has just come has its time to say something.
      for (const epoch of others) if (!saidAt.has(epoch)) saidAt.set(epoch, clock.monotonic())
      return Math.min(Number.POSITIVE_INFINITY, ...saidAt.values())
    },
    close() {
      clearInterval(ticking)
      if (gathering) clearTimeout(gathering)
    },
  }
}

/** Milliseconds for which other servers may say nothing, as they say something each second. */
const toldFor = 4_000
/** Milliseconds of silence where the table is read instead, which each server writes and reads every five seconds. */
const readFor = 12_000

/** Whether this server learns what others hear. Times are monotonic milliseconds. */
interface Deafness {
  isDeaf(): boolean
  /** For how long nothing was learnt since this was last asked. */
  time(): number
}

export function createDeafness(
  clock: Pick<Clock, 'monotonic'>,
  { heardTo, readTo }: { heardTo: () => number; readTo: () => number },
): Deafness {
  /** Deaf time up to here has been told. */
  let countedTo = Number.NEGATIVE_INFINITY
  const isDeaf = () => clock.monotonic() - heardTo() > toldFor
  return {
    isDeaf,
    time() {
      const now = clock.monotonic()
      const knownTo = Math.max(heardTo(), readTo())
      if (!isDeaf() || now - knownTo <= (readTo() > heardTo() ? readFor : toldFor)) return 0
      const from = Math.max(knownTo, countedTo)
      countedTo = now
      return now - from
    },
  }
}
