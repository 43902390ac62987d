import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../../../disk/log.ts'
import { createLocalHints } from '../../local-hints.ts'
import type { Hints, HintTopics } from '../../ports/hints.ts'
import type { Channel } from './channel.ts'
import { Folded, readers, type TopicHint } from './lines.ts'

/** Milliseconds for which hints are collected before they are sent. */
const gatherTime = 5
/** Pending hints above this limit, as in a store outage, are sent as one `lost`. */
const mostWaiting = 50_000
/** Kind of a line that reports lost hints. */
const lostKind = 'lost'

/** Topics of records that servers cache: the caches are refreshed before a hint is published here. */
const ofRecords: ReadonlySet<keyof HintTopics> = new Set([
  'host',
  'cluster',
  'task',
  'tokenEnded',
  'agentRevoked',
])

export interface StoreHints extends Hints {
  /** Hints for this process only, about changes that other servers see themselves. */
  readonly local: Hints
  /** Sets the refresh of cached records, which hints of other servers wait for. */
  refreshFirst(refresh: () => Promise<void>): void
  close(): void
}

/** Publishes hints in this process at once, and to other servers over the channel. */
export function createHints(channel: Channel, log: Log): StoreHints {
  const local = createLocalHints()
  let waiting = new Folded()
  let isSending = false
  let haveLost = false
  let refresh: () => Promise<void> = () => Promise.resolve()
  let received: TopicHint[] = []
  let isPublishing = false

  const publishLocal = ({ topic, hint }: TopicHint) => local.publish(topic, hint)

  /** Hints that arrive during a refresh wait for the next one. */
  async function refreshAndPublish(): Promise<void> {
    isPublishing = true
    while (received.length > 0) {
      const batch = received
      received = []
      await refresh().catch((error: unknown) =>
        log.debug({ err: error }, 'could not refresh records for a hint'),
      )
      batch.forEach(publishLocal)
    }
    isPublishing = false
  }

  function read(kind: keyof typeof readers, text: string): void {
    const all = readers[kind](text)
    if (all === null) return channel.miss()
    const isOfRecords = all[0] !== undefined && ofRecords.has(all[0].topic)
    if (!isOfRecords) return all.forEach(publishLocal)
    received.push(...all)
    if (!isPublishing) void refreshAndPublish()
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

  /** Hints published while a batch is in flight form the next one. */
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
      if (waiting.size <= mostWaiting) waiting.add({ topic, hint } as TopicHint)
      void sendAll()
    },
    subscribe: (topic, id, listener) => local.subscribe(topic, id, listener),
    missed: (listener) => channel.missed(listener),
    refreshFirst(its) {
      refresh = its
    },
    close: unsubscribe,
  }
}
