import type { ExecutionContext, TestFn } from 'ava'
import type { ServerOptions } from '../../src/server/app/options.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { scrape } from '../helpers/metrics/scrape.ts'
import type { TestServer } from '../helpers/servers/server.ts'
import { idsOf, isSigned, type Received, startReceiver } from '../helpers/servers/webhook-receiver.ts'
import { until } from '../helpers/until.ts'

type Start = (t: ExecutionContext, options?: Partial<ServerOptions>) => Promise<TestServer>

const toReceivers: Partial<ServerOptions> = {
  webhooks: { insecure: true, allow: ['127.0.0.1'] },
  webhookHostGrace: { offline: 500, online: 500 },
}

interface Sent {
  readonly type: string
  readonly data: Record<string, unknown>
}

const sent = (got: readonly Received[]): Sent[] => got.map(({ body }) => body as Sent)
const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`

function stepsOf(start: Start) {
  async function open(t: ExecutionContext, options: Partial<ServerOptions> = {}) {
    const server = await start(t, { ...toReceivers, ...options })
    const receiver = await startReceiver(t)
    let hooks = 0
    const webhook = (input: object): Promise<any> =>
      server.data('POST', '/api/webhooks', { name: `hook ${hooks++}`, url: receiver.url, secret, ...input })
    return { server, receiver, webhook }
  }

  /** Runs a task on hosts that ends with this exit code. */
  async function run(server: TestServer, hostIds: readonly number[], exitCode = 0): Promise<string> {
    const script = { content: `exit ${exitCode}` }
    return (await server.data('POST', '/api/tasks', { script, target: { hostIds }, async: false })).taskId
  }

  async function serving(
    t: ExecutionContext,
    server: TestServer,
    hostname: string,
    exitCode?: number,
  ): Promise<number> {
    const identity = await server.enroll(hostname)
    const agent = await ScriptedAgent.link(server, identity)
    agent.serve(({ script }) => ({
      exitCode: exitCode ?? Number(/exit (\d+)/.exec(String(script))?.[1] ?? 0),
    }))
    t.teardown(() => agent.cut())
    return identity.hostId
  }

  return { open, run, serving }
}

/** Events of tasks for webhooks, on every store (contract §16). */
export function webhooksOfTasksContract(test: TestFn, name: string, start: Start): void {
  const { open, run, serving } = stepsOf(start)

  test(`${name} the end of a task is sent, signed, with its status and without its script`, async (t) => {
    const { server, receiver, webhook } = await open(t)
    const hostId = await serving(t, server, 'web1')
    await webhook({ events: ['task.ended'] })
    const failed = await webhook({ events: ['task.failed'] })
    const good = await run(server, [hostId])
    const bad = await run(server, [hostId], 3)
    const got = await receiver.first(3)
    const told = sent(got).map(
      ({ type, data }) => `${type} ${String(data['taskId'])} ${String(data['status'])}`,
    )
    const wanted = [`task.ended ${good} SUCCESS`, `task.ended ${bad} FAILED`, `task.failed ${bad} FAILED`]
    t.deepEqual(told.toSorted(), wanted.toSorted())
    for (const each of got) {
      t.true(isSigned(secret, each))
      t.false(each.text.includes('exit '))
    }
    t.is(new Set(idsOf(got)).size, 3)
    const failure = sent(got).find(({ type }) => type === 'task.failed')
    t.like(failure?.data, { createdBy: 'admin', hostCount: 1, counts: { FAILED: 1 } })
    await until('the delivery is recorded', async () => {
      const { content } = await server.data('GET', `/api/webhooks/${failed.id}/deliveries?status=DELIVERED`)
      return content.length === 1 && content[0].lastStatus === 204 && content[0].tries === 1
    })
    const { of } = await scrape(server)
    t.is(of('rsm_webhook_deliveries_total{outcome="delivered"}'), 3)
    t.is(of('rsm_webhook_deliveries_waiting'), 0)
  })

  test(`${name} the failure of a schedule names the schedule, the failed hosts and a page about the task`, async (t) => {
    const { server, receiver, webhook } = await open(t, { publicUrl: 'https://rsm.example.org/ops/' })
    for (const hostname of ['web1', 'web2', 'db1'])
      await serving(t, server, hostname, hostname === 'db1' ? 0 : 4)
    const order = {
      name: 'nightly',
      everySeconds: 86_400,
      script: { content: 'exit' },
      target: { selector: '*' },
    }
    const schedule = await server.data('POST', '/api/schedules', order)
    await webhook({ events: ['task.failed', 'schedule.suspended'] })
    await webhook({ events: ['task.failed'], format: 'SLACK' })
    const { taskId } = await server.data('POST', `/api/schedules/${schedule.id}/run`)
    const got = await receiver.first(2)
    const url = `https://rsm.example.org/ops/#/tasks/${taskId}`
    t.like(got.find(({ body }) => body.type)?.body.data, {
      taskId,
      scheduleId: schedule.id,
      schedule: 'nightly',
      script: null,
      hostCount: 3,
      nodes: 'web[1-2]',
      count: 2,
      url,
    })
    const text = `rsm: schedule nightly FAILED on web[1-2] (2 of 3 hosts): ${url}`
    t.is(got.find(({ body }) => body.text)?.body.text, text)
  })

  test(`${name} filters narrow events to a schedule, to any schedule, to a script and to a user`, async (t) => {
    const { server, receiver, webhook } = await open(t)
    const hostId = await serving(t, server, 'web1')
    const target = { hostIds: [hostId] }
    const failing = { script: { content: 'exit 1' }, target }
    const schedule = (scheduleName: string) =>
      server.data('POST', '/api/schedules', { name: scheduleName, everySeconds: 86_400, ...failing })
    const [nightly, weekly] = [await schedule('nightly'), await schedule('weekly')]
    const script = await server.data('POST', '/api/scripts', {
      name: 'deploy',
      type: 'BASH',
      content: 'exit 1',
    })
    await server.data('POST', '/api/users', { username: 'ann', password: 'correct horse', role: 'OPERATOR' })
    const hook = (path: string, filters: object) =>
      webhook({ events: ['task.failed'], url: `${receiver.url}/${path}`, ...filters })
    await hook('nightly', { schedule: 'nightly' })
    await hook('any', { schedule: '*' })
    await hook('deploy', { script: 'deploy' })
    await hook('admin', { createdBy: 'admin' })
    await hook('ann', { createdBy: 'ann' })
    await hook('both', { createdBy: 'admin', script: 'deploy', schedule: '*' })
    // A filter follows a schedule that is renamed, or created again under its name.
    await server.data('PATCH', `/api/schedules/${nightly.id}`, { name: 'nocturnal' })
    await server.data('POST', `/api/schedules/${nightly.id}/run`)
    await server.data('DELETE', `/api/schedules/${nightly.id}`)
    const again = await schedule('nightly')
    await server.data('POST', `/api/schedules/${again.id}/run`)
    await server.data('POST', `/api/schedules/${weekly.id}/run`)
    await run(server, [hostId], 1)
    await server.data('POST', '/api/tasks', { scriptId: script.id, target, async: false })
    const paths = (await receiver.first(11)).map(({ path }) => path.replace('/hook/', ''))
    const wanted = [...Array(5).fill('admin'), ...Array(3).fill('any'), 'deploy', 'nightly', 'nightly']
    t.deepEqual(paths.toSorted(), wanted)
  })
}

/** The way in which a server sends, on every store (contract §16). */
export function webhooksSentContract(test: TestFn, name: string, start: Start): void {
  const { open, run, serving } = stepsOf(start)

  test(`${name} waiting deliveries are sent after a restart, in order, and a retry keeps its id`, async (t) => {
    const { server, receiver, webhook } = await open(t)
    const first = await serving(t, server, 'web1')
    receiver.answers(500)
    await webhook({ events: ['task.failed'] })
    const tasks: string[] = []
    for (let count = 0; count < 3; count++) tasks.push(await run(server, [first], 1))
    const [tried] = await receiver.first(1)
    await server.restart()
    receiver.answers(204)
    await until('all deliveries arrive', () => new Set(idsOf(receiver.got)).size === 3)
    const ids = idsOf(receiver.got)
    t.is(ids.at(-3), idsOf(tried ? [tried] : [])[0])
    t.deepEqual(
      sent(receiver.got.slice(-3)).map(({ data }) => data['taskId']),
      tasks,
    )
    t.is(receiver.got.at(-3)?.text, tried?.text)
    // A server that is slow to record the last answer would send it once more.
    t.deepEqual(
      ids.slice(0, -3),
      Array.from({ length: ids.length - 3 }, () => ids.at(-3)),
    )
  })

  test(`${name} a selector narrows events by host; a disabled or removed webhook receives nothing`, async (t) => {
    const { server, receiver, webhook } = await open(t)
    const web = await serving(t, server, 'web1')
    const db = await serving(t, server, 'db1')
    await webhook({ events: ['task.failed'], selector: 'db*', url: `${receiver.url}/db` })
    await webhook({ events: ['task.failed'], selector: 'nosuch*', url: `${receiver.url}/none` })
    await webhook({ events: ['task.failed'], enabled: false, url: `${receiver.url}/disabled` })
    const gone = await webhook({ events: ['task.failed'], url: `${receiver.url}/removed` })
    await server.data('DELETE', `/api/webhooks/${gone.id}`)
    await webhook({ events: ['task.failed'], url: `${receiver.url}/all` })
    await run(server, [web], 1)
    await run(server, [web, db], 1)
    const got = await receiver.first(3)
    const paths = got.map(({ path }) => path.replace('/hook/', ''))
    t.deepEqual(paths.toSorted(), ['all', 'all', 'db'])
  })

  test(`${name} waiting deliveries of a disabled webhook are sent as soon as it is enabled`, async (t) => {
    const { server, receiver, webhook } = await open(t)
    const hostId = await serving(t, server, 'web1')
    const { id } = await webhook({ events: ['task.failed'] })
    receiver.answers(503)
    await run(server, [hostId], 1)
    await receiver.first(1)
    await server.data('PATCH', `/api/webhooks/${id}`, { enabled: false })
    const waiting = async () => (await server.data('GET', `/api/webhooks/${id}/deliveries`)).content[0]
    // By then the due delivery was examined and left.
    await until('its next try is past', async () => Date.parse((await waiting()).nextAt) + 1_500 < Date.now())
    receiver.answers(204)
    t.is(receiver.got.length, 1)
    await server.data('PATCH', `/api/webhooks/${id}`, { enabled: true })
    await until('it is sent', () => receiver.got.length === 2, 10_000)
  })

  test(`${name} hosts that fall silent together are one event with a node set, and one when they are back`, async (t) => {
    // Changes less than a grace apart are one event.
    const webhookHostGrace = { offline: 2_000, online: 2_000 }
    const { server, receiver, webhook } = await open(t, { heartbeatInterval: 1, webhookHostGrace })
    await server.data('POST', '/api/hosts', { hostname: 'web9', ip: '10.0.0.9' })
    const agents: { agentId: string; token: string }[] = []
    for (const hostname of ['web1', 'web2', 'web3', 'db1']) agents.push(await server.enroll(hostname))
    const beat = (): Promise<unknown> =>
      Promise.all(
        agents.map(({ agentId, token }) =>
          server.api(
            'POST',
            '/api/agent/heartbeat',
            { agentId, status: 'HEALTHY', uptime: 1 },
            { authorization: `Bearer ${token}` },
          ),
        ),
      )
    await beat()
    await webhook({ events: ['host.offline', 'host.online'], selector: 'web*' })
    await receiver.first(1)
    t.deepEqual(sent(receiver.got)[0]?.data, { nodes: 'web[1-3]', count: 3 })
    t.is(sent(receiver.got)[0]?.type, 'host.offline')
    // Hosts that are offline already are not an event for a new webhook.
    const offline = async (): Promise<number> =>
      (await server.data('GET', '/api/hosts?status=OFFLINE')).totalElements
    await until('all are offline', async () => (await offline()) === 5)
    await webhook({ events: ['host.offline', 'host.online'], url: `${receiver.url}/late` })
    await until('their return is sent', async () => {
      await beat()
      return receiver.got.length >= 3
    })
    const told = receiver.got
      .slice(1)
      .map(({ path, body }) => `${path} ${body.type} ${body.data.nodes} ${body.data.count}`)
    const wanted = ['/hook host.online web[1-3] 3', '/hook/late host.online db1,web[1-3] 4']
    t.deepEqual(told.toSorted(), wanted.toSorted())
  })

  test(`${name} the revocation of an agent is sent`, async (t) => {
    const { server, receiver, webhook } = await open(t)
    const { hostId, agentId } = await server.enroll('web1')
    await webhook({ events: ['agent.revoked'], format: 'SLACK' })
    await webhook({ events: ['agent.revoked'] })
    await server.data('DELETE', `/api/hosts/${hostId}/agent`)
    const got = await receiver.first(2)
    t.like(
      sent(got).find(({ type }) => type),
      { type: 'agent.revoked', data: { hostId, hostname: 'web1', agentId } },
    )
    const slack = got.find(({ body }) => body.text !== undefined)
    t.is(slack?.body.text, 'rsm: the agent of host web1 was revoked')
  })

  test(`${name} a test is sent at once, before waiting deliveries; those are removed with their webhook`, async (t) => {
    const { server, receiver, webhook } = await open(t)
    const hostId = await serving(t, server, 'web1')
    const { id } = await webhook({ events: ['task.failed'] })
    receiver.answers(503)
    await run(server, [hostId], 1)
    await receiver.first(1)
    t.deepEqual(await server.data('POST', `/api/webhooks/${id}/test`), {
      delivered: false,
      status: 503,
      error: 'the receiver answered 503',
    })
    receiver.answers(200)
    t.deepEqual(await server.data('POST', `/api/webhooks/${id}/test`), {
      delivered: true,
      status: 200,
      error: null,
    })
    t.like(sent(receiver.got).at(-1), { type: 'webhook.test', data: { name: 'hook 0' } })
    const [waiting] = (await server.data('GET', `/api/webhooks/${id}/deliveries`)).content
    t.like(waiting, { status: 'WAITING', event: 'task.failed', tries: 1, lastStatus: 503 })
    await server.data('DELETE', `/api/webhooks/${id}`)
    const again = await webhook({ events: ['task.failed'] })
    t.is((await server.data('GET', `/api/webhooks/${again.id}/deliveries`)).totalElements, 0)
    t.is((await server.api('GET', `/api/webhooks/${id}/deliveries`)).status, 404)
  })
}
