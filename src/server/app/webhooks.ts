import type { ServerEvents } from '../audit/server-events.ts'
import type { Fleet } from '../hosts/fleet.ts'
import type { Member } from '../storage/ports/cluster.ts'
import type { Engine } from '../tasks/engine.ts'
import { createDeliveries } from '../webhooks/deliveries.ts'
import type { WebhookEvents } from '../webhooks/events.ts'
import { createJudge } from '../webhooks/judge.ts'
import { createPost } from '../webhooks/post.ts'
import { createSender } from '../webhooks/sender.ts'
import type { Base } from './base.ts'
import type { ServerOptions } from './options.ts'

/** Milliseconds (contract §16). A host that is back is told of sooner, once it is likely to stay. */
const defaultHostGrace = { offline: 60_000, online: 15_000 }

interface Parts {
  readonly webhookEvents: WebhookEvents
  readonly fleet: Fleet
  readonly engine: Engine
  readonly events: ServerEvents
  readonly member: Member
  readonly holdsLease: () => boolean
}

/** What sends to webhooks. Errors: `usage` for an allowance that can't be read. */
export function createWebhookWork(
  { data, facts, clock, log }: Base,
  { engine, events, ...parts }: Parts,
  { webhooks = {}, webhookHostGrace: hostGrace = defaultHostGrace }: ServerOptions,
) {
  const judge = createJudge(webhooks)
  const post = createPost(judge, undefined, webhooks.proxyVariable)
  const deliveries = createDeliveries({
    ...parts,
    store: data.store,
    ownership: data.ownership,
    agreed: data.agreed,
    sender: createSender({ post, keys: data.keys, clock }),
    openSince: () => engine.openSince(),
    facts,
    record: events.record,
    clock,
    log,
    hostGrace,
  })
  return {
    judge,
    deliveries: {
      ...deliveries,
      async stop() {
        await deliveries.stop()
        post.close()
      },
    },
  }
}
