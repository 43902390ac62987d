import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../../../disk/log.ts'
import { createLocalHints } from '../../local-hints.ts'
import type { Hints, HintTopics } from '../../ports/hints.ts'
import type { Channel } from './channel.ts'
import { Folded, readers, type TopicHint } from './lines.ts'

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
  /** `refresh` brings copies of records up to date; hints of other servers wait for it. */
  refreshFirst(refresh: () => Promise<void>): void
  close(): void
}

/** Hints of this process at once, and of the other servers over the channel. */
export function createHints(channel: Channel, log: Log): StoreHints {
  const local = createLocalHints()
  let waiting = new Folded()
  let isSending = false
  let haveLost = false
  let refresh: () => Promise<void> = () => Promise.resolve()
  let received: TopicHint[] = []
  let isPublishing = false

  const publishLocal = ({ topic, hint }: TopicHint) => local.publish(topic, hint)

  /** What comes while copies are brought up to date waits for the next time. */
  async function refreshAndPublish(): Promise<void> {
    isPublishing = true
    while (received.length > 0) {
      const batch = received
      received = []
      await refresh().catch((error: unknown) => log.debug({ err: error }, 'a look for a hint failed'))
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
