import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { untilFinal } from './execution.ts'
import { startFleet } from './fleet/fleet.ts'
import { type BenchServer, startServer } from './fleet/server.ts'
import { inTurn, ratioRow } from './measure.ts'
import type { Row } from './row.ts'

const agents = 5
/** The maximum of a server. */
const webhooks = 100
const tasks = 20
/** With the uncounted round, 100 webhooks get the events of 20 tasks each, more than 10,000 in total. */
const rounds = 5
const patience = 240

interface Receiver {
  url: string
  /** Resolves once this number of events has arrived. */
  until(count: number): Promise<void>
  close(): void
}

async function startReceiver(): Promise<Receiver> {
  let received = 0
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      received++
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async until(count) {
      for (let second = 0; second < patience; second++) {
        if (received >= count) return
        await delay(1000)
      }
      throw new Error(`${received} of ${count} events arrived within ${patience} s`)
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function setEnabled(server: BenchServer, ids: readonly unknown[], enabled: boolean): Promise<void> {
  for (const id of ids) await server.call('PATCH', `/api/webhooks/${String(id)}`, { enabled })
}

/** Milliseconds per task, for consecutive tasks. */
async function timeOfTasks(server: BenchServer): Promise<number> {
  const start = performance.now()
  for (let task = 0; task < tasks; task++) await untilFinal(server)
  return (performance.now() - start) / tasks
}

/** Tasks whose end a hundred webhooks receive vs the same tasks without webhooks (reliability L09). */
export async function benchWebhooks(): Promise<Row[]> {
  const receiver = await startReceiver()
  const fleet = await startFleet(agents, async (directory) => {
    const allow = ['--webhook-insecure', '--webhook-allow', '127.0.0.1']
    const server = await startServer(join(directory, 'server'), 'ERROR', 0, allow)
    return { servers: [server], stop: () => server.stop() }
  })
  try {
    const ids: unknown[] = []
    for (let count = 0; count < webhooks; count++) {
      const webhook = { name: `webhook ${count}`, url: receiver.url, events: ['task.ended'], enabled: false }
      ids.push((await fleet.call('POST', '/api/webhooks', webhook))['id'])
    }
    let events = 0
    async function withStorm(): Promise<number> {
      await setEnabled(fleet, ids, true)
      const time = await timeOfTasks(fleet)
      events += webhooks * tasks
      await receiver.until(events)
      await setEnabled(fleet, ids, false)
      return time
    }
    const measured = await inTurn(rounds, withStorm, () => timeOfTasks(fleet))
    const name = `a task on ${agents} agents in a storm of ${events} events, vs one without webhooks`
    return [ratioRow(name, 'ms', measured, { atMost: 1.25 })]
  } finally {
    await fleet.stop()
    receiver.close()
  }
}
