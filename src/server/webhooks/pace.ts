import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds from the beginning of one try to that of the next, of all webhooks: a storm of events leaves the loop to tasks. */
const between = 5

/** Answers what resolves when the next try may begin. */
export function createPace(): () => Promise<void> {
  let next = 0
  return async () => {
    const now = performance.now()
    const mine = Math.max(now, next)
    next = mine + between
    if (mine > now) await delay(mine - now)
  }
}
