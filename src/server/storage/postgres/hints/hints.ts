import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../../../disk/log.ts'
import { createLocalHints } from '../../local-hints.ts'
import type { Hints, HintTopics } from '../../ports/hints.ts'
import type { Channel } from './channel.ts'
import { Folded, readers, type Told } from './lines.ts'

/** Milliseconds for which hints are gathered before they are sent. */
const gatherTime = 5
/** More that wait, as while the store is away, are one word: look at everything. */
const mostWaiting = 50_000
/** Says that hints of its sender were lost. */
const lostKind = 'lost'

/** Topics of what each server keeps copies of: these are brought up to date before anybody here hears of it. */
const ofRecords: ReadonlySet<keyof HintTopics> = new Set([
  'host',
  'cluster',
  'task',
  'tokenEnded',
  'agentRevoked',
])

export interface StoreHints extends Hints {
  /** For this process only: what other servers see by themselves. */
  readonly local: Hints
  /** `look` brings copies of records up to date; hints of other servers wait for it. */
  lookFirst(look: () => Promise<void>): void
  close(): void
}

/** Hints of this process at once, and of the other servers over the channel. */
export function createHints(channel: Channel, log: Log): StoreHints {
  const local = createLocalHints()
  let waiting = new Folded()
  let isSending = false
  let haveLost = false
  let look: () => Promise<void> = () => Promise.resolve()
  let heard: Told[] = []
  let isTelling = false

  const tell = ({ topic, hint }: Told) => local.publish(topic, hint)

  /** What comes while copies are brought up to date waits for the next time. */
  async function tellAfterLook(): Promise<void> {
    isTelling = true
    while (heard.length > 0) {
      const batch = heard
      heard = []
      await look().catch((error: unknown) => log.debug({ err: error }, 'a look for a hint failed'))
      batch.forEach(tell)
    }
    isTelling = false
  }

  function read(kind: keyof typeof readers, text: string): void {
    const all = readers[kind](text)
    if (all === null) return channel.miss()
    const isOfRecords = all[0] !== undefined && ofRecords.has(all[0].topic)
    if (!isOfRecords) return all.forEach(tell)
    heard.push(...all)
    if (!isTelling) void tellAfterLook()
  }

  for (const kind of Object.keys(readers) as (keyof typeof readers)[])
    channel.hear(kind, (text) => read(kind, text))
  channel.hear(lostKind, () => channel.miss())

  async function sendOnce(): Promise<void> {
    const batch = waiting
    waiting = new Folded()
    const isTooMuch = batch.size > mostWaiting
    const lines = isTooMuch ? [] : batch.lines()
    try {
      await channel.send(haveLost || isTooMuch ? [`${lostKind} `, ...lines] : lines)
      haveLost = false
    } catch (error) {
      log.debug({ err: error }, 'hints to other servers were lost')
      haveLost = true
    }
  }

  /** What is published while one batch is on its way goes together in the next. */
  async function sendAll(): Promise<void> {
    if (isSending) return
    isSending = true
    await delay(gatherTime)
    do await sendOnce()
    while (waiting.size > 0)
    isSending = false
  }

  const unsubscribe = channel.missed(() => {
    if (haveLost) void sendAll()
  })

  return {
    local,
    publish(topic, hint) {
      local.publish(topic, hint)
      if (waiting.size <= mostWaiting) waiting.add({ topic, hint } as Told)
      void sendAll()
    },
    subscribe: (topic, id, listener) => local.subscribe(topic, id, listener),
    missed: (listener) => channel.missed(listener),
    lookFirst(its) {
      look = its
    },
    close: unsubscribe,
  }
}
